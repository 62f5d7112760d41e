import type { Run } from "../../api/types";
import { count, span } from "../../app/format";
import { Time } from "../../parts/time";

/** The rest of what the store keeps of a run. */
export function Facts({ run }: { run: Run }) {
  const retry = run.policy.retry;
  return (
    <section>
      <h2>Details</h2>
      <dl class="details">
        <Item name="made"><Time at={run.created_at} /></Item>
        <Item name="due"><Time at={run.due_at} /></Item>
        {run.finished_at && <Item name="ended"><Time at={run.finished_at} /></Item>}
        {run.expires_at && <Item name="expires"><Time at={run.expires_at} /></Item>}
        <Item name="queue">{run.queue}</Item>
        <Item name="priority">{run.priority}</Item>
        <Item name="failures">{count(run.failures)}</Item>
        <Item name="losses">{`${run.losses} of ${run.policy.max_losses}`}</Item>
        <Item name="retries">{retry.limit === null ? "without end" : retry.limit}{retry.limit === 0 ? "" : `, ${retry.backoff} from ${span(retry.delay)}`}</Item>
        <Item name="timeout">{run.policy.timeout === null ? "none" : span(run.policy.timeout)}</Item>
        {run.reason && <Item name="reason">{run.reason.replaceAll("_", " ")}</Item>}
        {run.note && <Item name="note" wide>{run.note}</Item>}
        {run.unique_key && <Item name="unique key" wide>{run.unique_key}</Item>}
        {run.touches > 1 && <Item name="touches">{count(run.touches)}</Item>}
        {run.share && <Item name="share">{run.share}</Item>}
      </dl>
    </section>
  );
}

function Item({ name, wide, children }: { name: string; wide?: boolean; children: preact.ComponentChildren }) {
  return (
    <div class={wide ? "whole" : undefined}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
