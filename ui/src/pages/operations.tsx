import { ask } from "../api/client";
import { useResource } from "../api/resource";
import { count } from "../app/format";
import { Empty, Show } from "../parts/empty";
import { Head } from "../parts/page";
import { StateMark } from "../parts/state";
import { Table } from "../parts/table";
import { Ago } from "../parts/time";

export default function OperationsPage() {
  const rows = useResource("operations", (signal) => ask("GET /operations", { query: { limit: 100 }, signal }), ["operations"]);
  return (
    <>
      <Head title="Operations" about="Actions on all runs that a filter finds." />
      <Show of={rows}>
        {(found) =>
          found.items.length === 0 ? (
            <Empty title="No operation yet">
              <p>On the page Runs, act on all that match: the operation appears here.</p>
            </Empty>
          ) : (
            <Table
              label="Operations"
              rows={found.items}
              keyOf={(row) => row.id}
              columns={[
                { name: "action", cell: (row) => row.action },
                { name: "state", cell: (row) => <StateMark state={row.state} /> },
                { name: "done", right: true, cell: (row) => count(row.done) },
                { name: "skipped", right: true, cell: (row) => count(row.skipped) },
                { name: "begun", cell: (row) => <Ago at={row.created_at} /> },
                { name: "by", cell: (row) => row.by ?? "–" },
                { name: "note", wide: true, cell: (row) => row.note ?? row.error ?? "" },
              ]}
            />
          )
        }
      </Show>
    </>
  );
}
