import { ask } from "../api/client";
import { useResource } from "../api/resource";
import type { Task } from "../api/types";
import { count, span } from "../app/format";
import { hrefOf } from "../app/router";
import { Empty, Show } from "../parts/empty";
import { Exports } from "../parts/exports";
import { TaskLink, WhyLink } from "../parts/link";
import { Head } from "../parts/page";
import { Table } from "../parts/table";

export default function TasksPage() {
  const tasks = useResource("tasks", (signal) => ask("GET /tasks", { signal }), ["tasks", "depths"]);
  return (
    <>
      <Head title="Tasks" about="What the code defines, and what waits.">
        <Exports name="tasks" rows={tasks.data.value?.items ?? []} />
      </Head>
      <Show of={tasks}>
        {(found) =>
          found.items.length === 0 ? (
            <Empty title="No task yet" command="rota worker -A app">
              <p>Tasks are functions with @app.task. They appear here when a worker starts.</p>
            </Empty>
          ) : (
            <Table
              label="Tasks"
              rows={found.items}
              keyOf={(task) => task.task}
              columns={[
                { name: "task", cell: (task) => <Name task={task} /> },
                { name: "queued", right: true, cell: (task) => runs(task.task, "queued", task.queued) },
                { name: "running", right: true, cell: (task) => runs(task.task, "running", task.running) },
                { name: "paused", right: true, extra: true, cell: (task) => runs(task.task, "paused", task.paused_runs) },
                { name: "limit", right: true, extra: true, cell: (task) => task.limit?.total ?? "–" },
                { name: "timeout", right: true, extra: true, cell: (task) => (task.timeout === null ? "–" : span(task.timeout)) },
                { name: "retries", right: true, extra: true, cell: (task) => task.retries ?? "∞" },
                { name: "about", wide: true, extra: true, cell: (task) => <span class="dim">{task.description}</span> },
                { name: "", extra: true, cell: (task) => <WhyLink subject={task.task} /> },
              ]}
            />
          )
        }
      </Show>
    </>
  );
}

/** The name, and whether something keeps the task from running. */
function Name({ task }: { task: Task }) {
  const held = task.paused ? "paused" : task.enabled && task.overrides?.enabled !== false ? "" : "disabled";
  return (
    <span class="row nowrap">
      <TaskLink name={task.task} />
      {held && <span class="pill held">{held}</span>}
      {task.overrides && <span class="pill">override</span>}
    </span>
  );
}

function runs(task: string, state: string, value: number) {
  return value ? <a href={hrefOf("/runs", { task, state })}>{count(value)}</a> : <span class="dim">0</span>;
}
