import { useSignal } from "@preact/signals";
import { ask } from "../../api/client";
import { useResource } from "../../api/resource";
import type { Task, TaskDetail } from "../../api/types";
import { count, span } from "../../app/format";
import { hrefOf } from "../../app/router";
import { may } from "../../app/session";
import { act } from "../../parts/act";
import { Show } from "../../parts/empty";
import { ScheduleLink, WhyLink } from "../../parts/link";
import { Head } from "../../parts/page";
import { PauseDialog } from "../../parts/pause";
import { PausedBy } from "../../parts/paused";
import { Table } from "../../parts/table";
import { Time } from "../../parts/time";
import type { PageProps } from "../registry";
import { Heat } from "./heat";
import { Keys } from "./keys";
import { OverrideDialog, OverridesInForce } from "./overrides";
import { Past } from "./past";
import { SubmitDialog } from "./submit";
import "../../styles/task.css";

export default function TaskPage({ params }: PageProps) {
  const name = params["name"] ?? "";
  const task = useResource(name, (signal) => ask("GET /tasks/{name}", { path: { name }, signal }), ["tasks", "depths", "runs", "stats"]);
  return <Show of={task} title={name}>{(found) => <Whole task={found} reload={task.reload} />}</Show>;
}

function Whole({ task, reload }: { task: TaskDetail; reload: () => void }) {
  const asked = useSignal<"pause" | "submit" | "override" | null>(null);
  const close = () => (asked.value = null);
  const path = { name: task.task };

  async function pause(until: string | null, note: string): Promise<void> {
    if (await act("POST /tasks/{name}/pause", { path, body: { until, note: note || null } }, `Paused ${task.task}`)) reload();
  }
  async function resume(): Promise<void> {
    if (await act("POST /tasks/{name}/resume", { path, body: {} }, `Resumed ${task.task}`)) reload();
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
          <>
            <button type="button" onClick={() => (task.paused ? void resume() : (asked.value = "pause"))}>
              {task.paused ? "Resume" : "Pause …"}
            </button>
            <button type="button" onClick={() => (asked.value = "override")}>
              Override …
            </button>
          </>
        )}
        <a class="button" href={hrefOf("/runs", { task: task.task })}>
          Runs
        </a>
        <WhyLink subject={task.task} />
      </Head>
      {task.paused && (
        <p class="banner">
          Paused
          <PausedBy task={task.task} />. Its runs wait until {task.paused_until ? <Time at={task.paused_until} /> : "somebody resumes it"}.
        </p>
      )}
      {!task.enabled && <p class="banner">The code has disabled this task: its runs wait.</p>}
      {task.enabled && task.overrides?.enabled === false && <p class="banner">An override disables this task: its runs wait.</p>}
      <Gauges task={task} />
      <OverridesInForce task={task} />
      <Past task={task.task} hour={task.last_hour} />
      <Heat task={task.task} />
      <div class="columns">
        <InForce task={task} />
        <Schedules task={task.task} />
      </div>
      <Keys task={task} />
      {asked.value === "pause" && <PauseDialog name={task.task} about="Runs in hand go on; no other run of this task starts." onClose={close} onPause={pause} />}
      {asked.value === "override" && <OverrideDialog name={task.task} onClose={close} reload={reload} />}
      {asked.value === "submit" && <SubmitDialog task={task} onClose={close} />}
    </>
  );
}

/** What waits and what runs, beside how much may run at once. */
function Gauges({ task }: { task: TaskDetail }) {
  const left = task.rate_left;
  const rate = task.overrides?.rate ?? task.rate;
  const own = task.overrides?.limit ?? task.limit;
  const limits = [...(own ? [own] : []), ...task.limits];
  const total = limits.map((limit) => limit.total).filter((each) => each !== null && each !== undefined).sort((one, two) => one - two)[0];
  return (
    <ul class="gauges">
      <Gauge name="queued" value={task.queued} href={hrefOf("/runs", { task: task.task, state: "queued" })} />
      <Gauge name={total === undefined ? "running" : `running, of at most ${count(total)}`} value={task.running} most={total} href={hrefOf("/runs", { task: task.task, state: "running" })} />
      {rate && left && <Gauge name={`may start now, of ${count(rate.n)} per ${span(rate.per)}`} value={left.left} most={rate.burst} />}
      <Gauge name="paused" value={task.paused_runs} href={hrefOf("/runs", { task: task.task, state: "paused" })} />
    </ul>
  );
}

function Gauge({ name, value, most, href }: { name: string; value: number; most?: number | undefined; href?: string }) {
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
  const over = task.overrides;
  const timeout = over?.timeout ?? task.timeout;
  const retries = over?.retry ? over.retry.limit : task.retries;
  const rate = over?.rate ?? task.rate;
  const rows: [string, string][] = [
    ["parameters", task.parameters ?? "unknown"],
    ["queue", task.queue],
    ["priority", String(task.priority)],
    ["timeout", timeout === null ? "none" : span(timeout)],
    ["retries", retries === null ? "without end" : String(retries)],
    ["executor", task.executor ?? "unknown"],
    ["rate", rate ? `${rate.n} per ${span(rate.per)}${rate.per_key ? ", per key" : ""}` : "none"],
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
