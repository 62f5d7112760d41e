import { ask } from "../api/client";
import { useResource } from "../api/resource";
import { count } from "../app/format";
import { Empty, Show } from "../parts/empty";
import { TaskLink } from "../parts/link";
import { Head } from "../parts/page";
import { wordOf } from "../parts/state";
import { Table } from "../parts/table";
import { Ago } from "../parts/time";

export default function DecisionsPage() {
  const rows = useResource("decisions", (signal) => ask("GET /decisions", { query: { limit: 500 }, signal }), ["decisions"]);
  return (
    <>
      <Head title="Decisions" about="Everything that did not run, and why." />
      <Show of={rows}>
        {(found) =>
          found.items.length === 0 ? (
            <Empty title="Nothing was refused, skipped or changed yet" />
          ) : (
            <Table
              label="Decisions"
              rows={found.items}
              keyOf={(row) => `${row.task} ${row.key} ${row.reason}`}
              columns={[
                { name: "times", right: true, cell: (row) => count(row.count) },
                { name: "reason", cell: (row) => wordOf(row.reason) },
                { name: "task", cell: (row) => <TaskLink name={row.task} /> },
                { name: "key", extra: true, cell: (row) => row.key || "–" },
                { name: "last", cell: (row) => <Ago at={row.last_at} /> },
                { name: "by", extra: true, cell: (row) => row.by ?? "–" },
                { name: "note", wide: true, cell: (row) => row.note ?? "" },
              ]}
            />
          )
        }
      </Show>
    </>
  );
}
