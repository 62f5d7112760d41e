import { ask } from "../api/client";
import { useResource } from "../api/resource";
import { span } from "../app/format";
import { hrefOf } from "../app/router";
import { Empty, Show } from "../parts/empty";
import { Head } from "../parts/page";
import { Table } from "../parts/table";

export default function WorkersPage() {
  const workers = useResource("workers", (signal) => ask("GET /workers", { signal }), ["workers"]);
  return (
    <>
      <Head title="Workers" about="Who works, on what, and who is silent." />
      <Show of={workers}>
        {(found) =>
          found.items.length === 0 ? (
            <Empty title="No worker is at work" command="rota worker -A app">
              <p>Runs wait until a worker starts.</p>
            </Empty>
          ) : (
            <Table
              label="Workers"
              rows={found.items}
              keyOf={(worker) => worker.name}
              columns={[
                { name: "worker", cell: (worker) => <a href={hrefOf("/runs", { worker: worker.name, state: "running" })}>{worker.name}</a> },
                { name: "is", cell: (worker) => worker.standing },
                { name: "seats", right: true, cell: (worker) => `${worker.held} / ${worker.seats}` },
                { name: "overdue", right: true, cell: (worker) => worker.overdue },
                { name: "heard", right: true, cell: (worker) => `${span(worker.silent_for)} ago` },
                { name: "host", extra: true, cell: (worker) => worker.host },
                { name: "version", extra: true, cell: (worker) => worker.version },
                { name: "tasks", wide: true, extra: true, cell: (worker) => worker.tasks.join(", ") },
              ]}
            />
          )
        }
      </Show>
    </>
  );
}
