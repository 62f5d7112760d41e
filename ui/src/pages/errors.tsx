import { ask } from "../api/client";
import { useResource } from "../api/resource";
import { hrefOf } from "../app/router";
import { count } from "../app/format";
import { Empty, Show } from "../parts/empty";
import { RunLink, TaskLink } from "../parts/link";
import { Head } from "../parts/page";
import { Spark } from "../parts/spark";
import { Table } from "../parts/table";
import { Ago } from "../parts/time";

export default function ErrorsPage() {
  const groups = useResource("errors", (signal) => ask("GET /errors", { query: { limit: 200 }, signal }), ["runs"]);
  return (
    <>
      <Head title="Errors" about="Failed runs, grouped by task, type and message." />
      <Show of={groups}>
        {(found) =>
          found.items.length === 0 ? (
            <Empty title="No run has failed lately" />
          ) : (
            <Table
              label="Groups of errors"
              rows={found.items}
              keyOf={(group) => `${group.task} ${group.type} ${group.message}`}
              columns={[
                { name: "runs", right: true, cell: (group) => count(group.count) },
                { name: "trend", extra: true, cell: (group) => <Spark values={group.spark} kind="bars" tone="bad" label={`${group.count} runs, over time`} /> },
                { name: "task", cell: (group) => <TaskLink name={group.task} /> },
                { name: "error", cell: (group) => <a class="mono" href={hrefOf("/runs", { task: group.task, state: "failed", error: group.type })}>{group.type}</a> },
                { name: "message", wide: true, cell: (group) => group.message },
                { name: "last", cell: (group) => <Ago at={group.last} /> },
                { name: "example", extra: true, cell: (group) => (group.runs[0] ? <RunLink id={group.runs[0]} /> : "–") },
              ]}
            />
          )
        }
      </Show>
    </>
  );
}
