import { useSignal } from "@preact/signals";
import { ask } from "../api/client";
import { useResource } from "../api/resource";
import type { Run, Worker } from "../api/types";
import { counted, span } from "../app/format";
import { hrefOf } from "../app/router";
import { may } from "../app/session";
import { act } from "../parts/act";
import { Empty, Show } from "../parts/empty";
import { RunLink, TaskLink } from "../parts/link";
import { Exports } from "../parts/exports";
import { NoteDialog } from "../parts/note";
import { Head } from "../parts/page";
import { Table } from "../parts/table";
import { Lasting } from "../parts/time";
import { Stalls } from "./stalls";

const GONE = ["stopped", "silent"];

export default function WorkersPage() {
  const workers = useResource(
    "workers",
    async (signal) => {
      const [found, held] = await Promise.all([ask("GET /workers", { signal }), ask("GET /runs", { query: { state: ["running"], limit: 200 }, signal })]);
      return { items: found.items, held: held.items };
    },
    ["workers", "runs"],
  );
  const stopping = useSignal<Worker | null>(null);

  async function direct(worker: Worker, verb: "quiet" | "resume" | "stop", note: string): Promise<boolean> {
    const said = { quiet: "starts no more runs", resume: "starts runs again", stop: "ends its runs, then stops" }[verb];
    const reply = await act(`POST /workers/{name}/${verb}`, { path: { name: worker.name }, body: { note: note || null } }, `${worker.name} ${said}`);
    if (reply) workers.reload();
    return reply !== null;
  }

  return (
    <Show of={workers} title="Workers">
      {(found) => (
        <>
          <Head title="Workers" about={aboutOf(found.items)}>
            <Exports name="workers" rows={found.items} />
          </Head>
          <Troubles workers={found.items} />
          {found.items.length === 0 ? (
            <Empty title="No worker is at work" command="rota worker -A app">
              <p>Runs wait until a worker starts.</p>
            </Empty>
          ) : (
            <>
              <Workers label="Workers" workers={found.items.filter((worker) => worker.standing !== "stopped")} direct={direct} stop={(worker) => (stopping.value = worker)} />
              <InHand runs={found.held} />
              <Stopped workers={found.items.filter((worker) => worker.standing === "stopped")} />
            </>
          )}
          {stopping.value && (
            <NoteDialog
              title={`Stop ${stopping.value.name}`}
              verb="Stop the worker"
              danger
              about="The worker takes no more runs, lets those in hand end, and stops. Only its machine can start it again."
              onClose={() => (stopping.value = null)}
              onDone={(note) => (stopping.value ? direct(stopping.value, "stop", note) : Promise.resolve(true))}
            />
          )}
        </>
      )}
    </Show>
  );
}

interface ListProps {
  label: string;
  workers: readonly Worker[];
  direct?: (worker: Worker, verb: "quiet" | "resume", note: string) => Promise<boolean>;
  stop?: (worker: Worker) => void;
}

function Workers({ label, workers, direct, stop }: ListProps) {
  return (
    <Table
      label={label}
        cards
      rows={workers}
      keyOf={(worker) => worker.name}
      columns={[
        { name: "worker", cell: (worker) => <a href={hrefOf("/runs", { worker: worker.name, state: "running" })}>{worker.name}</a> },
        { name: "state", cell: (worker) => worker.standing },
        { name: "seats taken", cell: (worker) => <Seats worker={worker} /> },
        { name: "stuck", right: true, cell: (worker) => (worker.overdue ? <span class="bad">{worker.overdue}</span> : <span class="dim">0</span>) },
        { name: "heard", right: true, cell: (worker) => worker.silent_for < 2 ? "now" : `${span(Math.round(worker.silent_for))} ago` },
        { name: "host", extra: true, cell: (worker) => `${worker.host} ${worker.pid || ""}` },
        { name: "version", extra: true, cell: (worker) => worker.version },
        { name: "queues and tasks", wide: true, extra: true, cell: (worker) => <span title={worker.tasks.join("\n")}>{[...worker.queues.map((queue) => `queue ${queue}`), counted(worker.tasks.length, "task")].join(", ")}</span> },
        {
          name: "do",
          cell: (worker) =>
            may("operate") && direct && stop && !gone(worker) && (
              <span class="row nowrap">
                <button type="button" class="small" onClick={() => void direct(worker, worker.quiet ? "resume" : "quiet", "")}>
                  {worker.quiet ? "Start runs again" : "Start no more runs"}
                </button>
                <button type="button" class="small danger" onClick={() => stop(worker)}>
                  Stop …
                </button>
              </span>
            ),
        },
      ]}
    />
  );
}

/** What workers hold, and since when: the longest first. */
function InHand({ runs }: { runs: readonly Run[] }) {
  const since = (run: Run) => run.claimed_at ?? run.due_at;
  return (
    <section class="part">
      <h2>In hand</h2>
      {runs.length === 0 ? (
        <p class="dim">No worker holds a run now.</p>
      ) : (
        <Table
          label="Runs in hand"
          cards
          rows={[...runs].sort((one, other) => since(one).localeCompare(since(other)))}
          keyOf={(run) => run.id}
          columns={[
            { name: "task", cell: (run) => <TaskLink name={run.task} /> },
            { name: "since", right: true, cell: (run) => <Lasting from={since(run)} /> },
            { name: "timeout", right: true, extra: true, cell: (run) => (run.policy.timeout === null ? <span class="dim">none</span> : span(run.policy.timeout)) },
            { name: "worker", cell: (run) => <span class="mono dim">{run.worker}</span> },
            { name: "run", cell: (run) => <RunLink id={run.id} /> },
            { name: "progress", wide: true, cell: (run) => run.progress && `${Math.round(run.progress.share * 100)} % ${run.progress.message ?? ""}` },
          ]}
        />
      )}
    </section>
  );
}

/** What is wrong with workers, and what to do about it. */
function Troubles({ workers }: { workers: readonly Worker[] }) {
  const alive = workers.filter((worker) => !gone(worker));
  const wrong = alive.filter((worker) => worker.ahead !== 0);
  return (
    <>
      <Stalls workers={alive} />
      {wrong.map((worker) => (
        <p key={worker.name} class="banner">
          The clock of {worker.name} on {worker.host} is {span(Math.abs(worker.ahead))} {worker.ahead > 0 ? "ahead of" : "behind"} the store's. Runs start by the store's clock;
          what handlers read there is wrong. Set it by NTP.
        </p>
      ))}
    </>
  );
}

/** Workers that have stopped are remembered for a while. They are not in the way. */
function Stopped({ workers }: { workers: readonly Worker[] }) {
  if (workers.length === 0) return null;
  return (
    <details class="part">
      <summary>{counted(workers.length, "worker")} stopped lately</summary>
      <Workers label="Stopped workers" workers={workers} />
    </details>
  );
}

function gone(worker: Worker): boolean {
  return GONE.includes(worker.standing);
}

function Seats({ worker }: { worker: Worker }) {
  return (
    <span class="row nowrap">
      <meter min={0} max={Math.max(1, worker.seats)} value={worker.held} aria-label={`${worker.held} of ${worker.seats} seats`} />
      {worker.held} / {worker.seats}
    </span>
  );
}

/** Who works, how full they are, and whether they run different versions. */
function aboutOf(workers: readonly Worker[]): string {
  const alive = workers.filter((worker) => !gone(worker));
  const held = alive.reduce((sum, worker) => sum + worker.held, 0);
  const seats = alive.reduce((sum, worker) => sum + worker.seats, 0);
  const versions = new Set(alive.map((worker) => worker.version));
  const mixed = versions.size > 1 ? ` They run ${versions.size} versions of rota.` : "";
  return `${counted(alive.length, "worker")} at work, ${held} of ${counted(seats, "seat")} taken.${mixed}`;
}
