import { ask } from "../../api/client";
import type { DecisionCount, ErrorGroup, FlowRow, ScheduleRow, Stat, Task, Worker } from "../../api/types";
import { now } from "../../app/clock";
import { holderOf } from "../../parts/holder";

const MINUTES = 60;

export interface Pulse {
  task: string;
  ended: number;
  failed: number;
  wait: number | null;
  perMinute: number[];
  queued: number;
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
  decisions: DecisionCount[];
  pulses: Pulse[];
  now: number;
}

export async function readNow(signal: AbortSignal): Promise<Picture> {
  const since = new Date(now.peek() - MINUTES * 60_000).toISOString();
  const [tasks, schedules, workers, flows, errors, decisions, stats] = await Promise.all([
    ask("GET /tasks", { signal }),
    ask("GET /schedules", { query: { limit: 500 }, signal }),
    ask("GET /workers", { signal }),
    ask("GET /flows", { signal }),
    ask("GET /errors", { query: { since, limit: 20 }, signal }),
    ask("GET /decisions", { query: { since, limit: 200 }, signal }),
    ask("GET /stats", { query: { minutes: MINUTES }, signal }),
  ]);
  const at = Date.parse(tasks.now);
  return {
    tasks: tasks.items,
    schedules: schedules.items,
    workers: workers.items,
    flows: flows.items,
    holders: await holdersOf(flows.items, signal),
    errors: errors.items,
    decisions: decisions.items,
    pulses: tasks.items.map((task) => pulseOf(task, stats.items, at)),
    now: at,
  };
}

const MOST_FLOWS = 4;

/** `why` knows tasks: a blocked step says what blocks it and what to do; else the step that failed is asked. */
async function holdersOf(flows: FlowRow[], signal: AbortSignal): Promise<Map<string, string>> {
  const troubled = flows.filter((flow) => flow.failed > 0 || flow.blocked > 0).slice(0, MOST_FLOWS);
  const found = await Promise.all(troubled.map((flow) => ask("GET /flows/{name}", { path: { name: flow.flow }, signal })));
  return new Map(found.map((flow) => [flow.flow, holderOf(flow)]));
}

function pulseOf(task: Task, stats: Stat[], at: number): Pulse {
  const perMinute = new Array<number>(MINUTES).fill(0);
  let failed = 0;
  let wait: number | null = null;
  for (const stat of stats) {
    if (stat.task !== task.task) continue;
    const place = MINUTES - 1 - Math.floor((at - Date.parse(stat.minute)) / 60_000);
    if (place >= 0 && place < MINUTES) perMinute[place] = (perMinute[place] ?? 0) + stat.succeeded + stat.failed;
    failed += stat.failed;
    if (stat.wait_p95 !== null) wait = Math.max(wait ?? 0, stat.wait_p95);
  }
  const ended = perMinute.reduce((total, value) => total + value, 0);
  return { task: task.task, ended, failed, wait, perMinute, queued: task.queued, running: task.running };
}
