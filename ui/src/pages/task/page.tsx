import { useSignal } from "@preact/signals";
import { ask } from "../../api/client";
import { useResource } from "../../api/resource";
import type { Task } from "../../api/types";
import { count, span } from "../../app/format";
import { hrefOf } from "../../app/router";
import { may } from "../../app/session";
import { act } from "../../parts/act";
import { Show } from "../../parts/empty";
import { ScheduleLink, WhyLink } from "../../parts/link";
import { NoteDialog } from "../../parts/note";
import { Head } from "../../parts/page";
import { Table } from "../../parts/table";
import { Time } from "../../parts/time";
import type { PageProps } from "../registry";
import { Past } from "./past";
import { SubmitDialog } from "./submit";
import "../../styles/task.css";

export default function TaskPage({ params }: PageProps) {
  const name = params["name"] ?? "";
  const task = useResource(name, (signal) => ask("GET /tasks/{name}", { path: { name }, signal }), ["tasks", "depths", "runs"]);
  return <Show of={task}>{(found) => <Whole task={found} reload={task.reload} />}</Show>;
}

function Whole({ task, reload }: { task: Task; reload: () => void }) {
  const asked = useSignal<"pause" | "submit" | null>(null);
  const close = () => (asked.value = null);
  const path = { name: task.task };

  async function switched(note: string): Promise<boolean> {
    const route = task.paused ? "POST /tasks/{name}/resume" : "POST /tasks/{name}/pause";
    const reply = await act(route, { path, body: { note: note || null } }, `${task.paused ? "Resumed" : "Paused"} ${task.task}`);
    if (reply) reload();
    return reply !== null;
  }

  return (
    <>
      <Head title={task.task} about={task.description || task.parameters}>
        {may("submit") && (
          <button type="button" onClick={() => (asked.value = "submit")}>
            Submit …
          </button>
        )}
        {may("operate") && (
          <button type="button" onClick={() => (task.paused ? void switched("") : (asked.value = "pause"))}>
            {task.paused ? "Resume" : "Pause …"}
          </button>
        )}
        <a class="button" href={hrefOf("/runs", { task: task.task })}>
          Runs
        </a>
        <WhyLink subject={task.task} />
      </Head>
      {task.paused && <p class="banner">This task is paused: its runs wait until somebody resumes it.</p>}
      {!task.enabled && <p class="banner">The code has disabled this task: its runs wait.</p>}
      <Gauges task={task} />
      <Past task={task.task} />
      <div class="columns">
        <InForce task={task} />
        <Schedules task={task.task} />
      </div>
      {asked.value === "pause" && <NoteDialog title={`Pause ${task.task}`} verb="Pause" about="Runs in hand go on; no other run of this task starts." onClose={close} onDone={switched} />}
      {asked.value === "submit" && <SubmitDialog task={task} onClose={close} />}
    </>
  );
}

/** What waits and what runs, beside how much may run at once. */
function Gauges({ task }: { task: Task }) {
  const limits = [...(task.limit ? [task.limit] : []), ...task.limits];
  const total = limits.map((limit) => limit.total).filter((each) => each !== null && each !== undefined).sort((one, two) => one - two)[0];
  return (
    <ul class="gauges">
      <Gauge name="queued" value={task.queued} href={hrefOf("/runs", { task: task.task, state: "queued" })} />
      <Gauge name={total === undefined ? "running" : `running, of at most ${count(total)}`} value={task.running} most={total} href={hrefOf("/runs", { task: task.task, state: "running" })} />
      <Gauge name="paused" value={task.paused_runs} href={hrefOf("/runs", { task: task.task, state: "paused" })} />
    </ul>
  );
}

function Gauge({ name, value, most, href }: { name: string; value: number; most?: number | undefined; href: string }) {
  return (
    <li>
      <a href={href}>
        <strong>{count(value)}</strong> {name}
      </a>
      {most !== undefined && <meter min={0} max={Math.max(most, value)} value={value} aria-label={name} />}
    </li>
  );
}

function InForce({ task }: { task: Task }) {
  const rows: [string, string][] = [
    ["parameters", task.parameters ?? "unknown"],
    ["queue", task.queue],
    ["priority", String(task.priority)],
    ["timeout", task.timeout === null ? "none" : span(task.timeout)],
    ["retries", task.retries === null ? "without end" : String(task.retries)],
    ["executor", task.executor ?? "unknown"],
    ["rate", task.rate ? `${task.rate.n} per ${span(task.rate.per)}${task.rate.per_key ? ", per key" : ""}` : "none"],
    ["most that wait", task.max_pending === null ? "any number" : count(task.max_pending)],
    ["paused keys", task.paused_keys.join(", ") || "none"],
  ];
  return (
    <section>
      <h2>In force</h2>
      <dl class="details">
        {rows.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function Schedules({ task }: { task: string }) {
  const schedules = useResource(task, (signal) => ask("GET /schedules", { query: { task, limit: 100 }, signal }), ["schedules"]);
  return (
    <section>
      <h2>Schedules</h2>
      <Show of={schedules}>
        {(found) =>
          found.items.length === 0 ? (
            <p class="dim">No schedule makes runs of this task.</p>
          ) : (
            <Table
              label="Schedules"
              rows={found.items}
              keyOf={(row) => row.id}
              columns={[
                { name: "schedule", cell: (row) => <ScheduleLink id={row.id} /> },
                { name: "fires", wide: true, cell: (row) => row.words },
                { name: "next", cell: (row) => (row.state === "active" ? <Time at={row.next_at} own={row.zone} /> : row.state) },
              ]}
            />
          )
        }
      </Show>
    </section>
  );
}
