import { ask } from "../api/client";
import { useResource } from "../api/resource";
import { Show } from "../parts/empty";
import { RunLink } from "../parts/link";
import { Head } from "../parts/page";
import { StateMark } from "../parts/state";
import { Table } from "../parts/table";
import { Ago } from "../parts/time";
import type { PageProps } from "./registry";

export default function FlowPage({ params }: PageProps) {
  const name = params["name"] ?? "";
  const flow = useResource(name, (signal) => ask("GET /flows/{name}", { path: { name }, signal }), ["flows"]);
  return (
    <Show of={flow}>
      {(found) => (
        <>
          <Head title={found.flow} about={`Period ${found.period}, ${found.zone}`} />
          <Table
            label="Steps"
            rows={(found.periods ?? []).flatMap((period) => period.steps)}
            keyOf={(step) => `${step.period} ${step.step}`}
            columns={[
              { name: "period", cell: (step) => step.period },
              { name: "step", cell: (step) => step.step },
              { name: "state", cell: (step) => <StateMark state={step.state} /> },
              { name: "since", cell: (step) => <Ago at={step.since} /> },
              { name: "run", extra: true, cell: (step) => (step.run ? <RunLink id={step.run} /> : "–") },
              { name: "blocked by", wide: true, cell: (step) => step.blocked_by.join(", ") },
            ]}
          />
        </>
      )}
    </Show>
  );
}
