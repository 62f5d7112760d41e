import { ask } from "../../api/client";
import { useResource } from "../../api/resource";
import type { LineageRetryOf, Run } from "../../api/types";
import { hrefOf } from "../../app/router";
import { RunLink, ScheduleLink } from "../../parts/link";
import { StateMark } from "../../parts/state";
import { Ago, Time } from "../../parts/time";

/** Where the run comes from, and what came of it. */
export function LineageView({ run }: { run: Run }) {
  const lineage = useResource(run.id, (signal) => ask("GET /runs/{id}/lineage", { path: { id: run.id }, signal }));
  const found = lineage.data.value;
  if (!found) return null;
  return (
    <section>
      <h2>Lineage</h2>
      <ul class="lineage">
        <li>
          <span class="dim">made by</span> <Origin run={run} />
        </li>
        <Relatives name="retry of" runs={found.retry_of} />
        <Relatives name="steps before" runs={found.before} />
        <Relatives name="steps after" runs={found.after} />
        <Relatives name="retried as" runs={found.retries} />
      </ul>
    </section>
  );
}

function Origin({ run }: { run: Run }) {
  const { kind, of, nominal, period } = run.origin;
  if ((kind === "schedule" || kind === "run_now") && of) {
    return (
      <>
        schedule <ScheduleLink id={of} />
        {nominal && (
          <>
            , the tick of <Time at={nominal} />
          </>
        )}
      </>
    );
  }
  if (kind === "retry" && of) return <>a retry of <RunLink id={of} /></>;
  if (kind === "flow" && of) {
    return (
      <>
        flow <a href={hrefOf(`/flows/${encodeURIComponent(of)}`)}>{of}</a> {period}
      </>
    );
  }
  return <>{kind.replaceAll("_", " ")}{of ? ` ${of}` : ""}</>;
}

function Relatives({ name, runs }: { name: string; runs: LineageRetryOf[] }) {
  return runs.map((run) => (
    <li key={name + run.id}>
      <span class="dim">{name}</span> <StateMark state={run.state} /> {run.step ?? run.task} <RunLink id={run.id} />{" "}
      <span class="dim">
        <Ago at={run.finished_at ?? run.created_at} />
      </span>
    </li>
  ));
}
