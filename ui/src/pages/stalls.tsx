import type { Worker, WorkerStalls } from "../api/types";
import { counted, span } from "../app/format";
import { hrefOf } from "../app/router";
import { RunLink, TaskLink } from "../parts/link";
import { blockedProcesses } from "./blocked";

interface Found {
  worker: Worker;
  stall: WorkerStalls;
  /** How many other workers live on the same loop. */
  others?: number;
}

/** Calls that do not end, and what blocked an event loop, each with the place in the code. */
export function Stalls({ workers }: { workers: readonly Worker[] }) {
  const calls: Found[] = workers.flatMap((worker) => worker.stalls.filter((stall) => stall.what === "call").map((stall) => ({ worker, stall })));
  const loops: Found[] = blockedProcesses(workers, Infinity).map(({ stall, workers: [worker, ...others] }) => ({ worker, stall, others: others.length }));
  const found = [...calls, ...loops];
  return (
    <>
      {found.map((each) => (
        <div key={`${each.worker.name} ${each.stall.what} ${each.stall.run}`} class="banner stall">
          {each.stall.what === "call" ? <Call {...each} /> : <Loop {...each} />}
          {each.stall.stack && (
            <details>
              <summary>{each.stall.what === "call" ? "Where it is now" : "What blocked it"}</summary>
              <pre>{each.stall.stack}</pre>
            </details>
          )}
        </div>
      ))}
    </>
  );
}

function Call({ worker, stall }: Found) {
  return (
    <p>
      A call of <TaskLink name={stall.task ?? ""} /> has outlived its timeout: it has taken a seat of {worker.name} for {span(Math.round(stall.seconds))} (run{" "}
      <RunLink id={stall.run ?? ""} />
      ). Nothing can end a thread from outside. Let the task look at ctx.stopping, and stop the worker to get the seat back. All{" "}
      <a href={hrefOf("/runs", { reason: "timed_out", since: "1d" })}>runs that timed out</a>.
    </p>
  );
}

function Loop({ worker, stall, others = 0 }: Found) {
  return (
    <p>
      The event loop of {worker.name}
      {others > 0 && ` and ${counted(others, "other worker")} of its process`} was blocked for {span(stall.seconds)}, until {span(Math.round(stall.over_for ?? 0))} ago. No handler went on there meanwhile. Let an
      async task await, or make it a plain def: rota calls that in a thread.
    </p>
  );
}
