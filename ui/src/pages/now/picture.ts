import { ask } from "../../api/client";
import type { DecisionCount, ErrorGroup, FlowRow, ScheduleRow, Stat, Task, Worker } from "../../api/types";
import { now } from "../../app/clock";
import { holderOf } from "../../parts/holder";

const MINUTES = 60;

export interface Pulse {
  task: string;
  ended: number;
  failed: number;
  /** Seconds within which half of the runs, and 95 % of them, have started after they were due. */
  wait50: number | null;
  wait95: number | null;
  perMinute: number[];
  queued: number;
  /** How many were queued, from the time on at which this page was opened. */
  depths: readonly number[];
  running: number;
}

/** Everything from which the page judges what needs somebody. */
export interface Picture {
  tasks: Task[];
  schedules: ScheduleRow[];
  workers: Worker[];
  flows: FlowRow[];
  /** The task that tells what holds a flow up, by the name of the flow. */
  holders: Map<string, string>;
  errors: ErrorGroup[];
  /** Who has paused a task or a schedule, and why, however long ago. */
  paused: DecisionCount[];
  /** Ticks of the last hour that made no run, because an earlier one still ran. */
  skipped: DecisionCount[];
  /** Keys that are refused now. */
  breakers: { row: DecisionCount; until: string }[];
  pulses: Pulse[];
  now: number;
}

export async function readNow(signal: AbortSignal): Promise<Picture> {
  const since = new Date(now.peek() - MINUTES * 60_000).toISOString();
  const [tasks, schedules, workers, flows, errors, refused, skipped, stats, hour] = await Promise.all([
    ask("GET /tasks", { signal }),
    ask("GET /schedules", { query: { limit: 500 }, signal }),
    ask("GET /workers", { signal }),
    ask("GET /flows", { signal }),
    ask("GET /errors", { query: { since, limit: 20 }, signal }),
    ask("GET /decisions", { query: { since, reason: "breaker", limit: 50 }, signal }),
    ask("GET /decisions", { query: { since, reason: "already_running", limit: 50 }, signal }),
    ask("GET /stats", { query: { minutes: MINUTES }, signal }),
    ask("GET /stats", { query: { minutes: MINUTES, every: "all" }, signal }),
  ]);
  const at = Date.parse(tasks.now);
  const [holders, breakers, paused] = await Promise.all([
    holdersOf(flows.items, signal),
    openOf(refused.items, signal),
    tasks.items.some((task) => task.paused) || schedules.items.some((row) => row.state === "paused") ? ask("GET /decisions", { query: { reason: "paused", limit: 500 }, signal }) : null,
  ]);
  return {
    tasks: tasks.items,
    schedules: schedules.items,
    workers: workers.items,
    flows: flows.items,
    holders,
    errors: errors.items,
    paused: paused?.items ?? [],
    skipped: skipped.items,
    breakers,
    pulses: tasks.items.map((task) => pulseOf(task, stats.items, hour.items.find((stat) => stat.task === task.task), at)),
    now: at,
  };
}

const MOST_FLOWS = 4;
const MOST_TASKS = 6;

/** `why` knows tasks: a blocked step says what blocks it and what to do; else the step that failed is asked. */
async function holdersOf(flows: FlowRow[], signal: AbortSignal): Promise<Map<string, string>> {
  const troubled = flows.filter((flow) => flow.failed > 0 || flow.blocked > 0).slice(0, MOST_FLOWS);
  const found = await Promise.all(troubled.map((flow) => ask("GET /flows/{name}", { path: { name: flow.flow }, signal })));
  return new Map(found.map((flow) => [flow.flow, holderOf(flow)]));
}

/** Refusals of an hour name keys whose breaker may have closed since: their tasks know. */
async function openOf(refused: DecisionCount[], signal: AbortSignal): Promise<{ row: DecisionCount; until: string }[]> {
  const tasks = [...new Set(refused.map((row) => row.task))].slice(0, MOST_TASKS);
  const known = await Promise.all(tasks.map((name) => ask("GET /tasks/{name}/keys", { path: { name }, signal }).catch(() => null)));
  return refused.flatMap((row) => {
    const key = known[tasks.indexOf(row.task)]?.items.find((each) => each.key === row.key);
    return key?.breaker && key.rests_until ? [{ row, until: key.rests_until }] : [];
  });
}

const DEPTHS = 60;
const depthsSeen = new Map<string, { at: number; values: number[] }>();

/** Note how many are queued; return what was seen of it since the page was opened, once a second at most. */
function depthsOf(task: Task, at: number): readonly number[] {
  const seen = depthsSeen.get(task.task) ?? { at: 0, values: [] };
  if (at - seen.at < 900) return seen.values;
  const next = { at, values: [...seen.values, task.queued].slice(-DEPTHS) };
  depthsSeen.set(task.task, next);
  return next.values;
}

function pulseOf(task: Task, stats: Stat[], hour: Stat | undefined, at: number): Pulse {
  const perMinute = new Array<number>(MINUTES).fill(0);
  let failed = 0;
  for (const stat of stats) {
    if (stat.task !== task.task) continue;
    const place = MINUTES - 1 - Math.floor((at - Date.parse(stat.minute)) / 60_000);
    if (place >= 0 && place < MINUTES) perMinute[place] = (perMinute[place] ?? 0) + stat.succeeded + stat.failed;
    failed += stat.failed;
  }
  const ended = perMinute.reduce((total, value) => total + value, 0);
  const waits = { wait50: hour?.wait_p50 ?? null, wait95: hour?.wait_p95 ?? null };
  return { task: task.task, ended, failed, ...waits, perMinute, queued: task.queued, depths: depthsOf(task, at), running: task.running };
}
