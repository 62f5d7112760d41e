import { ask } from "../../api/client";
import { useResource } from "../../api/resource";
import { now } from "../../app/clock";
import { filterOf } from "../../app/filter";
import { place, search } from "../../app/router";
import { Empty, Show } from "../../parts/empty";
import { RunLink, TaskLink } from "../../parts/link";
import { Head } from "../../parts/page";
import { StateMark } from "../../parts/state";
import { Table } from "../../parts/table";
import { Ago } from "../../parts/time";

export default function RunsPage() {
  const runs = useResource(
    search.value,
    (signal) => ask("GET /runs", { query: { ...filterOf(place.peek().query, now.peek()), limit: 100 }, signal }),
    ["runs"],
  );
  return (
    <>
      <Head title="Runs" />
      <Show of={runs}>
        {(found) =>
          found.items.length === 0 ? (
            <Empty title="No run matches" command="rota runs submit TASK" />
          ) : (
            <Table
              label="Runs"
              rows={found.items}
              keyOf={(run) => run.id}
              columns={[
                { name: "state", cell: (run) => <StateMark state={run.state} /> },
                { name: "task", cell: (run) => <TaskLink name={run.task} /> },
                { name: "run", cell: (run) => <RunLink id={run.id} /> },
                { name: "made", wide: true, cell: (run) => <Ago at={run.created_at} /> },
              ]}
            />
          )
        }
      </Show>
    </>
  );
}
