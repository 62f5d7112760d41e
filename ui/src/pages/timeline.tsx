import { ask } from "../api/client";
import { useResource } from "../api/resource";
import { Empty, Show } from "../parts/empty";
import { Head } from "../parts/page";
import { Table } from "../parts/table";

export default function TimelinePage() {
  const rows = useResource("timeline", (signal) => ask("GET /timeline", { signal }), []);
  return (
    <>
      <Head title="Time line" about="What ran when." />
      <Show of={rows}>
        {(found) =>
          found.items.length === 0 ? (
            <Empty title="Nothing has run lately" />
          ) : (
            <Table
              label="Time line"
              rows={found.items}
              keyOf={(row) => row.name}
              columns={[
                { name: "task", cell: (row) => row.name },
                { name: "runs", wide: true, cell: (row) => row.segments.reduce((sum, segment) => sum + segment.count, 0) },
              ]}
            />
          )
        }
      </Show>
    </>
  );
}
