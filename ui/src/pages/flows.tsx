import { ask } from "../api/client";
import { useResource } from "../api/resource";
import type { FlowRow } from "../api/types";
import { hrefOf } from "../app/router";
import { Empty, Show } from "../parts/empty";
import { Head } from "../parts/page";
import { Table } from "../parts/table";

export default function FlowsPage() {
  const flows = useResource("flows", (signal) => ask("GET /flows", { signal }), ["flows"]);
  return (
    <>
      <Head title="Flows" about="Steps that wait for each other, done once a period." />
      <Show of={flows}>
        {(found) =>
          found.items.length === 0 ? (
            <Empty title="No flow yet">
              <p>A flow is declared in code, with app.flow.</p>
            </Empty>
          ) : (
            <Table
              label="Flows"
              rows={found.items}
              keyOf={(flow) => flow.flow}
              columns={[
                { name: "flow", cell: (flow) => <a href={hrefOf(`/flows/${encodeURIComponent(flow.flow)}`)}>{flow.flow}</a> },
                { name: "period", cell: (flow) => flow.period },
                { name: "steps", right: true, cell: (flow) => flow.steps },
                { name: "done", right: true, cell: (flow) => flow.done },
                { name: "running", right: true, extra: true, cell: (flow) => flow.running },
                { name: "waiting", right: true, extra: true, cell: (flow) => flow.waiting },
                { name: "blocked", right: true, cell: (flow) => <Trouble count={flow.blocked} tone="odd" /> },
                { name: "failed", right: true, cell: (flow) => <Trouble count={flow.failed} tone="bad" /> },
                { name: "state", wide: true, extra: true, cell: (flow) => <State flow={flow} /> },
              ]}
            />
          )
        }
      </Show>
    </>
  );
}

/** How far the period is, as a bar and in words. */
function State({ flow }: { flow: FlowRow }) {
  const word = flow.complete ? "complete" : flow.failed ? "failing" : flow.blocked ? "blocked" : flow.running || flow.waiting || flow.done ? "under way" : "not begun";
  return (
    <span class="row nowrap">
      <meter min={0} max={flow.steps} value={flow.done} aria-label={`${flow.done} of ${flow.steps} steps done`} />
      <span class={flow.failed ? "bad" : flow.blocked ? "odd" : undefined}>{word}</span>
    </span>
  );
}

function Trouble({ count, tone }: { count: number; tone: string }) {
  return <span class={count ? tone : "dim"}>{count}</span>;
}
