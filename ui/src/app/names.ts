import { signal } from "@preact/signals";
import { ask } from "../api/client";

/** Names of tasks and schedules, for completions. They are read when somebody begins to type. */
export const taskNames = signal<string[]>([]);
export const scheduleNames = signal<string[]>([]);

const FRESH = 30_000;
let readAt = 0;

export async function readNames(): Promise<void> {
  if (Date.now() - readAt < FRESH) return;
  readAt = Date.now();
  try {
    const [tasks, schedules] = await Promise.all([
      ask("GET /tasks"),
      ask("GET /schedules", { query: { limit: 500 } }),
    ]);
    taskNames.value = tasks.items.map((task) => task.task);
    scheduleNames.value = schedules.items.map((schedule) => schedule.id);
  } catch {
    readAt = 0; // completions are a convenience: the next key tries again
  }
}
