import type { Run } from "../../api/types";
import { counted } from "../../app/format";
import { markOf, wordOf } from "../../parts/state";

const ENDS = ["succeeded", "failed", "cancelled"];

/** The way of a run through its states: where it has been, where it is, and where it can still end. */
export function StatePath({ run }: { run: Run }) {
  const claims = Math.max(run.fence, run.attempts.length);
  const isFinal = run.finished_at !== null;
  const back = isFinal && claims > 0 ? claims - 1 : run.state === "running" ? claims - 1 : claims;
  const ends = isFinal ? [run.state] : ENDS;
  return (
    <ol class="path" aria-label="Its way through the states">
      <Step state="queued" now={run.state === "queued"} seen />
      {run.state === "paused" && <Step state="paused" now seen />}
      <Step state="running" now={run.state === "running"} seen={claims > 0} more={claims > 1 ? `${claims} ×` : ""} />
      {back > 0 && <li class="back">↩ {counted(back, "time")} back in the queue</li>}
      {ends.map((state) => (
        <Step key={state} state={state} now={run.state === state} seen={isFinal} end={!isFinal} />
      ))}
    </ol>
  );
}

function Step({ state, now, seen, more, end }: { state: string; now: boolean; seen: boolean; more?: string; end?: boolean }) {
  return (
    <li class="step" data-state={state} data-seen={seen} data-end={end ?? false} aria-current={now ? "step" : undefined}>
      <span aria-hidden="true">{markOf(state)}</span> {wordOf(state)} {more}
    </li>
  );
}
