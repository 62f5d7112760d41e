import { ask } from "../../api/client";
import { useResource } from "../../api/resource";
import type { Run } from "../../api/types";
import { may } from "../../app/session";
import { CopyButton } from "../../parts/copy";
import { Time } from "../../parts/time";

/** What the handler logged, attempt by attempt: the last one first. */
export function LogTail({ run }: { run: Run }) {
  if (!may("read:payload") || !run.attempts.some((attempt) => attempt.log)) return null;
  return <Tails key={run.fence} run={run} />;
}

function Tails({ run }: { run: Run }) {
  const logs = useResource(`${run.id} ${run.fence}`, (signal) => ask("GET /runs/{id}/log", { path: { id: run.id }, signal }));
  const found = [...(logs.data.value?.items ?? [])].filter((each) => each.text).reverse();
  if (found.length === 0) return null;
  return (
    <section>
      <h2>Log</h2>
      {found.map((each, index) => (
        <details key={each.fence} class="log" open={index === 0}>
          <summary>
            claim {each.fence}, {each.outcome.replaceAll("_", " ")} <Time at={each.ended_at} />
          </summary>
          <pre class="trace" tabIndex={0} aria-label={`Log of claim ${each.fence}`}>
            {each.text}
          </pre>
          <CopyButton text={each.text} label="Copy the log" />
        </details>
      ))}
    </section>
  );
}
