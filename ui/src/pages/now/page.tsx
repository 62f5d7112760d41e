import type { ComponentChildren } from "preact";
import { useResource } from "../../api/resource";
import type { Topic } from "../../api/stream";
import { count, span } from "../../app/format";
import { hrefOf } from "../../app/router";
import { Show } from "../../parts/empty";
import { ScheduleLink, TaskLink } from "../../parts/link";
import { Head } from "../../parts/page";
import { Spark } from "../../parts/spark";
import { Table } from "../../parts/table";
import { Ago, Time } from "../../parts/time";
import "../../styles/now.css";
import { readNow, type Picture, type Pulse as PulseOf } from "./picture";
import { needsOf } from "./needs";
import { Needs } from "./list";

const TOPICS: Topic[] = ["tasks", "schedules", "flows", "decisions", "depths", "stats", "workers"];

/** What needs somebody, then how it goes, then what comes next. */
export default function NowPage() {
  const picture = useResource("now", readNow, TOPICS);
  return (
    <Show of={picture} title="Now">
      {(found) => (
        <>
          <Head title="Now" />
          <Tiles picture={found} />
          <Needs needs={needsOf(found)} begun={found.tasks.length + found.workers.length > 0} reload={picture.reload} />
          <div class="nowcolumns">
            <Pulse picture={found} />
            <Next picture={found} />
          </div>
        </>
      )}
    </Show>
  );
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** The whole in a few numbers. */
function Tiles({ picture }: { picture: Picture }) {
  const live = picture.workers.filter((worker) => worker.standing !== "stopped" && worker.standing !== "silent");
  const seats = sum(live.map((worker) => worker.seats));
  const perMinute = picture.pulses.reduce<number[]>((total, pulse) => pulse.perMinute.map((value, at) => value + (total[at] ?? 0)), []);
  const ended = sum(picture.pulses.map((pulse) => pulse.ended));
  const failed = sum(picture.pulses.map((pulse) => pulse.failed));
  const slowest = picture.pulses.reduce<PulseOf | null>((most, pulse) => ((pulse.wait95 ?? 0) > (most?.wait95 ?? 0) ? pulse : most), null);
  return (
    <dl class="tiles">
      <Tile name="workers" href={hrefOf("/workers")} value={count(live.length)} about={`${count(seats)} seats`} />
      <Tile name="running" href={hrefOf("/runs", { state: "running" })} value={count(sum(picture.tasks.map((task) => task.running)))} about={seats ? `${Math.round((100 * sum(live.map((worker) => worker.held))) / seats)} % of the seats` : "no seat"} />
      <Tile name="queued" href={hrefOf("/runs", { state: "queued" })} value={count(sum(picture.tasks.map((task) => task.queued)))} about="due or later" />
      <Tile name="ended in an hour" href={hrefOf("/runs", { since: "1h" })} value={count(ended)} about={<Spark values={perMinute} label={`${ended} runs ended in the last hour`} width={110} />} />
      <Tile name="failed in an hour" href={hrefOf("/errors", { since: "1h" })} value={count(failed)} about={ended ? `${((100 * failed) / ended).toFixed(1)} %` : "nothing ended"} bad={failed > 0} />
      <Tile name="longest wait, p95" href={slowest ? hrefOf(`/tasks/${encodeURIComponent(slowest.task)}`) : hrefOf("/tasks")} value={slowest?.wait95 ? span(slowest.wait95) : "–"} about={slowest ? `of ${slowest.task}` : "nothing has waited"} />
    </dl>
  );
}

function Tile({ name, value, about, href, bad }: { name: string; value: string; about: ComponentChildren; href: string; bad?: boolean }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <a href={href} class={bad ? "bad" : undefined}>
          {value}
        </a>
        <span class="dim">{about}</span>
      </dd>
    </div>
  );
}

/** Each task in the last hour: how many ended, how long they waited. */
function Pulse({ picture }: { picture: Picture }) {
  const busy = picture.pulses.filter((pulse) => pulse.ended || pulse.queued || pulse.running);
  return (
    <section>
      <h2>The last hour</h2>
      {busy.length === 0 ? (
        <p class="dim">Nothing has run in the last hour.</p>
      ) : (
        <Table
          label="Tasks in the last hour"
          rows={busy}
          keyOf={(pulse) => pulse.task}
          columns={[
            { name: "task", cell: (pulse) => <TaskLink name={pulse.task} /> },
            { name: "ended a minute", cell: (pulse) => <Spark values={pulse.perMinute} label={`${pulse.ended} runs of ${pulse.task} ended in the last hour`} /> },
            { name: "ended", right: true, cell: (pulse) => count(pulse.ended) },
            { name: "failed", right: true, cell: (pulse) => (pulse.failed ? <a class="bad" href={hrefOf("/runs", { task: pulse.task, state: "failed", since: "1h" })}>{count(pulse.failed)}</a> : <span class="dim">0</span>) },
            { name: "wait p50", right: true, extra: true, cell: (pulse) => (pulse.wait50 === null ? "–" : span(pulse.wait50)) },
            { name: "p95", right: true, extra: true, cell: (pulse) => (pulse.wait95 === null ? "–" : span(pulse.wait95)) },
            { name: "queued", right: true, extra: true, cell: (pulse) => <Depth pulse={pulse} /> },
          ]}
        />
      )}
    </section>
  );
}

/** Fewer points make a line that says nothing. */
const ENOUGH = 8;

/** How many wait, and how that went since the page was opened. */
function Depth({ pulse }: { pulse: PulseOf }) {
  return (
    <span class="depth">
      {pulse.depths.length >= ENOUGH && <Spark values={pulse.depths} label={`queued runs of ${pulse.task} since this page was opened`} width={40} />}
      {pulse.queued ? <a href={hrefOf("/runs", { task: pulse.task, state: "queued" })}>{count(pulse.queued)}</a> : <span class="dim">0</span>}
    </span>
  );
}

function Next({ picture }: { picture: Picture }) {
  const coming = picture.schedules
    .filter((row) => row.next_at && row.state === "active")
    .sort((one, other) => (one.next_at ?? "").localeCompare(other.next_at ?? ""))
    .slice(0, 10);
  return (
    <section>
      <h2>Next fires</h2>
      {coming.length === 0 ? (
        <p class="dim">No schedule will fire.</p>
      ) : (
        <Table
          label="Next fires"
          rows={coming}
          keyOf={(row) => row.id}
          columns={[
            { name: "next", cell: (row) => <Ago at={row.next_at} own={row.zone} /> },
            { name: "at", extra: true, cell: (row) => <Time at={row.next_at} own={row.zone} /> },
            { name: "schedule", wide: true, cell: (row) => <ScheduleLink id={row.id} /> },
          ]}
        />
      )}
    </section>
  );
}
