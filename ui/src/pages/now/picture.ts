import { ask } from "../../api/client";
import type { DecisionCount, ErrorGroup, FlowRow, ScheduleRow, Stat, Task, Worker } from "../../api/types";
import { now } from "../../app/clock";

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
    errors: errors.items,
    decisions: decisions.items,
    pulses: tasks.items.map((task) => pulseOf(task, stats.items, at)),
    now: at,
  };
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
