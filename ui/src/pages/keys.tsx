import { ask } from "../api/client";
import { useResource } from "../api/resource";
import { Empty, Show } from "../parts/empty";
import { TaskLink, WhyLink } from "../parts/link";
import { Head } from "../parts/page";
import { Table } from "../parts/table";
import { Ago } from "../parts/time";

export default function KeysPage() {
  const marks = useResource("keys", (signal) => ask("GET /marks", { query: { limit: 500 }, signal }), ["runs"]);
  return (
    <>
      <Head title="Keys" about="What rota remembers of each key: its last success, its last end, its failures in a row." />
      <Show of={marks}>
        {(found) =>
          found.items.length === 0 ? (
            <Empty title="No key is remembered yet">
              <p>Keys come from tasks with key= or activity=.</p>
            </Empty>
          ) : (
            <Table
              label="Keys"
              rows={found.items}
              keyOf={(mark) => `${mark.task} ${mark.key}`}
              columns={[
                { name: "key", cell: (mark) => mark.key },
                { name: "task", cell: (mark) => <TaskLink name={mark.task} /> },
                { name: "last success", cell: (mark) => <Ago at={mark.succeeded_at} /> },
                { name: "last end", extra: true, cell: (mark) => <Ago at={mark.finished_at} /> },
                { name: "failures in a row", right: true, cell: (mark) => mark.failures },
                { name: "", wide: true, cell: (mark) => <WhyLink subject={mark.task} key_={mark.key} /> },
              ]}
            />
          )
        }
      </Show>
    </>
  );
}
