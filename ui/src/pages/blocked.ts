import type { Worker, WorkerStalls } from "../api/types";

/** An event loop that was blocked, and the workers that live on it. */
export interface Blocked {
  stall: WorkerStalls;
  workers: [Worker, ...Worker[]];
}

/** The last stall of each process: the workers of a process have one loop, and each of them tells of it. */
export function blockedProcesses(workers: readonly Worker[], lately: number): Blocked[] {
  const found = new Map<string, Blocked>();
  for (const worker of workers) {
    const stall = worker.stalls.find((each) => each.what === "loop" && (each.over_for ?? 0) < lately);
    if (!stall) continue;
    const process = worker.pid ? `${worker.host} ${worker.pid}` : worker.name;
    const known = found.get(process);
    if (known) {
      known.workers.push(worker);
      if (stall.stack && !known.stall.stack) known.stall = stall;
    } else found.set(process, { stall, workers: [worker] });
  }
  return [...found.values()];
}
