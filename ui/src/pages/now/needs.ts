import type { ErrorGroup } from "../../api/types";
import type { Action } from "../../parts/operation";
import { counted, relative, span } from "../../app/format";
import { isWorthARetry, POISON } from "../../parts/again";
import { keyOfSchedule } from "../../parts/paused";
import { lastName, wordOf } from "../../parts/state";
import { blockedProcesses } from "../blocked";
import type { Picture } from "./picture";

export type Fix =
  | { kind: "resume-task"; task: string }
  | { kind: "resume-schedule"; id: string }
  | { kind: "reset-mark"; task: string; key: string }
  | { kind: "operation"; action: Action; task: string; error: string }
  | { kind: "command"; text: string }
  | { kind: "open"; path: string; name: string };

/** One thing that needs somebody: the higher the weight, the sooner. */
export interface Need {
  id: string;
  weight: number;
  title: string;
  detail: string;
  /** What `why` is asked about. */
  subject: string;
  key?: string;
  fix: Fix;
}

const LATE = 60_000;
/** Seconds for which a blocked loop that is free again is told. */
const LATELY = 900;
const GONE = ["stopped", "silent"];
const GOOD = ["succeeded", "running", "queued", "forgotten", "joined"];

export function needsOf(picture: Picture): Need[] {
  return [
    ...withoutWorker(picture),
    ...stuckWorkers(picture),
    ...blockedLoops(picture),
    ...wrongClocks(picture),
    ...poison(picture),
    ...lateSchedules(picture),
    ...failures(picture),
    ...breakers(picture),
    ...flowTroubles(picture),
    ...badTicks(picture),
    ...pauses(picture),
    ...fullLimits(picture),
  ].sort((one, other) => other.weight - one.weight);
}

function waiting(runs: number): string {
  return `${counted(runs, "run")} ${runs === 1 ? "waits" : "wait"}`;
}

function withoutWorker({ tasks, workers }: Picture): Need[] {
  const live = workers.filter((worker) => worker.standing !== "silent" && worker.standing !== "stopped");
  return tasks
    .filter((task) => task.queued > 0 && !task.paused && task.kind === "task")
    .filter((task) => !live.some((worker) => worker.tasks.includes(task.task) && (worker.queues.length === 0 || worker.queues.includes(task.queue))))
    .map((task) => ({
      id: `worker ${task.task}`,
      weight: 100,
      title: `No worker for ${task.task}`,
      detail: `${waiting(task.queued)} in the queue ${task.queue}`,
      subject: task.task,
      fix: { kind: "command", text: task.queue === "default" ? "rota worker -A app" : `rota worker -A app --queues ${task.queue}` },
    }));
}

/** A thread that does not end belongs to a run that timed out: the answer is there. */
function stuckWorkers({ workers, errors }: Picture): Need[] {
  const timedOut = errors.find((group) => lastName(group.type) === "TimeoutError")?.runs[0];
  return workers
    .filter((worker) => worker.standing === "silent" || (worker.overdue > 0 && worker.standing !== "stopped"))
    .map((worker) => ({
      id: `stuck ${worker.name}`,
      weight: 90,
      title: worker.overdue > 0 ? `${worker.name} has ${counted(worker.overdue, "thread")} that ${worker.overdue === 1 ? "does" : "do"} not end` : `${worker.name} is silent`,
      detail: worker.overdue > 0 ? `a call has outlived its timeout and keeps its seat: ${worker.held + worker.overdue} of ${worker.seats} are taken` : `heard ${span(Math.round(worker.silent_for))} ago; its runs go to others when their leases end`,
      subject: (worker.overdue > 0 ? timedOut : undefined) ?? worker.tasks[0] ?? worker.name,
      fix: { kind: "open", path: "/workers", name: "Look at the workers" },
    }));
}

/** While a loop is blocked, no async handler of that process goes on: it matters after it is over, too. */
function blockedLoops({ workers }: Picture): Need[] {
  return blockedProcesses(workers, LATELY).map(({ stall, workers: [worker, ...others] }) => ({
    id: `loop ${worker.name}`,
    weight: 76,
    title: `The event loop of ${worker.name}${others.length ? ` and ${counted(others.length, "other worker")} of its process` : ""} was blocked for ${span(stall.seconds)}`,
    detail: "no async handler went on there meanwhile; what blocked it is on the page of workers",
    subject: stall.task ?? worker.tasks[0] ?? worker.name,
    fix: { kind: "open" as const, path: "/workers", name: "Look at the workers" },
  }));
}

function wrongClocks({ workers }: Picture): Need[] {
  const wrong = new Map(workers.filter((worker) => worker.ahead && !GONE.includes(worker.standing)).map((worker) => [worker.host || worker.name, worker]));
  return [...wrong].map(([host, worker]) => ({
    id: `clock ${host}`,
    weight: 80,
    title: `The clock of ${worker.name} is ${span(Math.abs(worker.ahead))} ${worker.ahead > 0 ? "ahead" : "behind"}`,
    detail: `on ${host}: handlers there read the wrong time; set it by NTP`,
    subject: worker.tasks[0] ?? worker.name,
    fix: { kind: "open", path: "/doctor", name: "Ask the doctor" },
  }));
}

/** A run that ended its workers again and again was given up. A retry may end another one. */
function poison({ errors }: Picture): Need[] {
  return errors
    .filter((group) => group.type === POISON)
    .map((group) => ({
      id: `poison ${group.task}`,
      weight: 82,
      title: `${group.task}: ${counted(group.count, "run")} poisoned ${group.count === 1 ? "its worker" : "their workers"}`,
      detail: "every worker that took it went away: look before you retry",
      subject: group.runs[0] ?? group.task,
      fix: { kind: "open", path: `/runs/${encodeURIComponent(group.runs[0] ?? "")}`, name: "Look at the run" },
    }));
}

function lateSchedules({ schedules, now }: Picture): Need[] {
  return schedules
    .filter((row) => row.state === "active" && row.next_at && now - Date.parse(row.next_at) > LATE)
    .map((row) => ({
      id: `late ${row.id}`,
      weight: 85,
      title: `${row.id} should have fired`,
      detail: `${span((now - Date.parse(row.next_at ?? "")) / 1000)} ago: no process fires schedules`,
      subject: row.id,
      fix: { kind: "command", text: "rota worker -A app" },
    }));
}

function failures({ errors }: Picture): Need[] {
  const found = new Map<string, ErrorGroup[]>(); // by task and type, as they are retried
  for (const group of errors.filter((each) => each.type !== POISON)) {
    const name = `error ${group.task} ${group.type}`;
    found.set(name, [...(found.get(name) ?? []), group]);
  }
  return [...found].slice(0, 6).map(([id, groups]) => {
    const group = groups[0] as ErrorGroup;
    const count = groups.reduce((sum, each) => sum + each.count, 0);
    const others = groups.length > 1 ? `, and ${counted(groups.length - 1, "other message")}` : "";
    return {
      id,
      weight: 60 + Math.min(15, count),
      title: `${group.task}: ${counted(count, "run")} failed with ${lastName(group.type)}`,
      detail: group.message + others,
      subject: group.runs[0] ?? group.task,
      fix: fixOf(group),
    };
  });
}

function fixOf(group: ErrorGroup): Fix {
  const run = group.runs[0];
  if (run && !isWorthARetry(group)) return { kind: "open", path: `/runs/${encodeURIComponent(run)}`, name: "Look at the run" };
  return { kind: "operation", action: "retry", task: group.task, error: group.type };
}

function breakers({ breakers: open, now }: Picture): Need[] {
  return open.map(({ row, until }) => ({
    id: `breaker ${row.task} ${row.key}`,
    weight: 55,
    title: `The breaker of ${row.task} is open for ${row.key || "all"}`,
    detail: `${counted(row.count, "submit")} refused; it closes by itself ${relative(Date.parse(until), now)}`,
    subject: row.task,
    key: row.key,
    fix: { kind: "reset-mark", task: row.task, key: row.key },
  }));
}

function flowTroubles({ flows, holders }: Picture): Need[] {
  return flows
    .filter((flow) => flow.failed > 0 || flow.blocked > 0)
    .map((flow) => ({
      id: `flow ${flow.flow}`,
      weight: flow.failed ? 58 : 52,
      title: `${flow.flow} ${flow.period} is ${flow.failed ? "failing" : "blocked"}`,
      detail: `${counted(flow.failed, "step")} failed, ${flow.blocked} blocked, ${flow.done} of ${flow.steps} done`,
      subject: holders.get(flow.flow) ?? flow.flow,
      fix: { kind: "open", path: `/flows/${encodeURIComponent(flow.flow)}`, name: "Open the flow" },
    }));
}

/** Ticks that made no run, late deadlines, and failures that no group of errors tells already. */
function badTicks({ schedules, errors, flows, skipped, now }: Picture): Need[] {
  const told = new Set(errors.slice(0, 6).map((group) => group.task));
  const bad = schedules
    .filter((row) => row.state === "active" && row.last !== null && !GOOD.includes(row.last))
    .filter((row) => row.last !== "failed" || !told.has(row.task))
    .map((row) => ({
      id: `tick ${row.id}`,
      weight: row.last === "late" ? 57 : row.last === "failed" ? 50 : 40,
      title: tickTitle(row.id, row.last ?? ""),
      detail: row.last === "late" ? `it should have succeeded by now; expected ${row.words}` : `${wordOf(row.last ?? "")}; ${row.words}`,
      subject: row.last === "late" ? row.task : row.id, // a deadline makes no runs: what holds the work knows its task
      fix: openTick(row.id, flows.find((flow) => row.id.startsWith(`expect:${flow.flow}/`))?.flow),
    }));
  return [...bad, ...skippedLately(schedules, skipped, now)];
}

/** A schedule skips, runs, skips again: it does not come and go here, but stays while its last tick makes a run. */
function skippedLately(schedules: Picture["schedules"], skipped: Picture["skipped"], now: number): Need[] {
  return schedules.flatMap((row): Need[] => {
    const decided = skipped.find((each) => each.key === keyOfSchedule(row.id));
    if (!decided || row.state !== "active" || !GOOD.includes(row.last ?? "")) return [];
    return [
      {
        id: `tick ${row.id}`,
        weight: 40,
        title: `${row.id} skipped ${counted(decided.count, "tick")}`,
        detail: `${wordOf(decided.reason)}, last ${relative(Date.parse(decided.last_at), now)}; ${row.words}`,
        subject: row.id,
        fix: openTick(row.id, undefined),
      },
    ];
  });
}

function openTick(id: string, flow: string | undefined): Fix {
  if (flow) return { kind: "open", path: `/flows/${encodeURIComponent(flow)}`, name: "Open the flow" };
  return { kind: "open", path: `/schedules/${encodeURIComponent(id)}`, name: "Open the schedule" };
}

function tickTitle(id: string, last: string): string {
  if (last === "late") return `${id.replace(/^expect:/, "")} is late`;
  return last === "failed" ? `The last run of ${id} failed` : `${id} skipped its last tick`;
}

function pauses({ tasks, schedules, paused: decisions, now }: Picture): Need[] {
  const note = (task: string) => decisions.find((row) => row.task === task && row.key === "");
  const paused = tasks.filter((task) => task.paused).map((task): Need => {
    const by = note(task.task);
    return {
      id: `pause ${task.task}`,
      weight: task.queued ? 45 : 30,
      title: `${task.task} is paused${by?.by ? ` by ${by.by}` : ""}`,
      detail: [by?.note && `“${by.note}”`, by && sinceOf(by.last_at, now), waiting(task.queued)].filter(Boolean).join("; "),
      subject: task.task,
      fix: { kind: "resume-task", task: task.task },
    };
  });
  const schedulesPaused = schedules.filter((row) => row.state === "paused").map((row): Need => {
    const by = decisions.find((each) => each.key === keyOfSchedule(row.id));
    return {
      id: `pause ${row.id}`,
      weight: 25,
      title: `The schedule ${row.id} is paused${by?.by ? ` by ${by.by}` : ""}`,
      detail: [row.note && `“${row.note}”`, by && sinceOf(by.last_at, now), row.words].filter(Boolean).join("; "),
      subject: row.id,
      fix: { kind: "resume-schedule", id: row.id },
    };
  });
  return [...paused, ...schedulesPaused];
}

function sinceOf(at: string, now: number): string {
  return `since ${span(Math.max(0, Math.round((now - Date.parse(at)) / 1000)))}`;
}

function fullLimits({ tasks }: Picture): Need[] {
  return tasks
    .filter((task) => task.limit?.total && task.running >= task.limit.total && task.queued > task.running)
    .map((task) => ({
      id: `limit ${task.task}`,
      weight: 20,
      title: `The limit of ${task.task} is full`,
      detail: `${task.running} of ${task.limit?.total ?? 0} run, ${waiting(task.queued)}`,
      subject: task.task,
      fix: { kind: "open", path: `/runs?task=${encodeURIComponent(task.task)}&state=running`, name: "See what runs" },
    }));
}
