import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { send } from "../../api/client";
import { useResource } from "../../api/resource";
import type { Schedule, ScheduleFindings } from "../../api/types";
import { zone, MY_ZONE } from "../../app/preferences";
import { now } from "../../app/clock";
import { instant, span } from "../../app/format";
import { go } from "../../app/router";
import { may } from "../../app/session";
import { act } from "../../parts/act";
import { Show } from "../../parts/empty";
import { Json } from "../../parts/json";
import { PausedBy } from "../../parts/paused";
import { RunLink, TaskLink, WhyLink } from "../../parts/link";
import { NoteDialog } from "../../parts/note";
import { Head } from "../../parts/page";
import { StateMark, wordOf } from "../../parts/state";
import { Strip } from "../../parts/strip";
import { Table } from "../../parts/table";
import { Ago, Time } from "../../parts/time";
import "../../styles/schedules.css";
import type { PageProps } from "../registry";
import { isPaused, ScheduleActions } from "./actions";
import { BackfillDialog } from "./backfill";
import { EditDialog } from "./edit";

export default function SchedulePage({ params }: PageProps) {
  const id = params["id"] ?? "";
  const editing = useSignal(false);
  const filling = useSignal(false);
  const deleting = useSignal(false);
  const found = useResource(id, (signal) => send("GET /schedules/{id}", { path: { id }, signal }), ["schedules", "runs"]);
  return (
    <Show of={found} title={id}>
      {({ data: schedule, etag }) => (
        <article class="schedule">
          <Head title={schedule.id} about={schedule.words}>
            <ScheduleActions row={schedule} reload={found.reload} />
            {may("operate") && schedule.kind === "schedule" && (
              <button type="button" onClick={() => (filling.value = true)}>
                Backfill …
              </button>
            )}
            {may("schedule") && isEditable(schedule) && (
              <button type="button" onClick={() => (editing.value = true)}>
                Edit …
              </button>
            )}
            {may("schedule") && !schedule.owner && schedule.kind === "schedule" && (
              <button type="button" class="danger" onClick={() => (deleting.value = true)}>
                Delete …
              </button>
            )}
            <WhyLink subject={schedule.id} />
          </Head>
          {isPaused(schedule) && (
            <p class="banner">
              Paused
              <PausedBy task={schedule.task} schedule={schedule.id} postponed={schedule.paused_until !== null} />.{" "}
              {schedule.paused_until === null ? (
                "It fires no tick until somebody resumes it."
              ) : (
                <>
                  It goes on by itself at <Time at={schedule.paused_until} own={schedule.zone} />.
                </>
              )}
            </p>
          )}
          <Findings of={schedule.findings ?? []} />
          <section>
            <h2>Last outcomes</h2>
            <Strip firings={schedule.firings} />
          </section>
          <div class="columns">
            <Upcoming schedule={schedule} />
            <Firings schedule={schedule} />
          </div>
          <Details schedule={schedule} />
          {editing.value && <EditDialog schedule={schedule} etag={etag} onClose={() => (editing.value = false)} onSaved={found.reload} />}
          {filling.value && <BackfillDialog id={schedule.id} onClose={() => (filling.value = false)} onDone={found.reload} />}
          {deleting.value && <DeleteDialog id={schedule.id} etag={etag} onClose={() => (deleting.value = false)} />}
        </article>
      )}
    </Show>
  );
}

/** Asks before a schedule goes. Somebody who has changed it since then is not overruled. */
function DeleteDialog({ id, etag, onClose }: { id: string; etag: string | null; onClose: () => void }) {
  async function remove(note: string): Promise<boolean> {
    const headers: Record<string, string> = etag ? { "If-Match": etag } : {};
    const reply = await act("DELETE /schedules/{id}", { path: { id }, query: { note: note || null }, headers }, `${id} is deleted`);
    if (reply) go("/schedules");
    return reply !== null;
  }
  return <NoteDialog title={`Delete ${id}`} verb="Delete the schedule" danger about="It fires no more. Runs that it has made stay." onClose={onClose} onDone={remove} />;
}

/** A save replaces the whole schedule: one with a period, which the form cannot keep, is edited where it was made. */
function isEditable(schedule: Schedule): boolean {
  return schedule.once === null && !schedule.owner && schedule.kind === "schedule";
}

/** What may be wrong with it: nights in which its time comes twice or not at all, fires closer than its runs. */
function Findings({ of }: { of: readonly ScheduleFindings[] }) {
  if (of.length === 0) return null;
  return (
    <ul class="findings" aria-label="What may be wrong with it">
      {of.map((finding) => (
        <li key={finding.code + finding.message} data-level={finding.level}>
          <strong>{finding.level === "note" ? "Note" : finding.code.startsWith("clock") ? "Clock change" : "Look at it"}</strong>
          <span>
            {finding.message} <span class="dim">{finding.hint}</span>
          </span>
        </li>
      ))}
    </ul>
  );
}

/** The next fires, in the zone of the schedule and in mine. */
function Upcoming({ schedule }: { schedule: Schedule }) {
  if (schedule.state !== "active") return null;
  const mine = zone.value === "utc" ? "UTC" : MY_ZONE;
  return (
    <section>
      <h2>Next</h2>
      <Table
        label="Next fires"
        rows={schedule.upcoming}
        keyOf={(at) => at}
        columns={[
          { name: "", cell: (at) => <Ago at={at} own={schedule.zone} /> },
          { name: schedule.zone, wide: mine === schedule.zone, cell: (at) => instant(Date.parse(at), schedule.zone, now.value) },
          ...(mine === schedule.zone ? [] : [{ name: `${mine} (mine)`, wide: true, cell: (at: string) => instant(Date.parse(at), mine, now.value) }]),
        ]}
      />
    </section>
  );
}

function Firings({ schedule }: { schedule: Schedule }) {
  if (schedule.firings.length === 0) return null;
  return (
    <section>
      <h2>Ticks</h2>
      <Table
        label="Past ticks"
        rows={schedule.firings}
        keyOf={(firing) => firing.nominal}
        columns={[
          { name: "tick", cell: (firing) => <Time at={firing.nominal} own={schedule.zone} /> },
          { name: "outcome", cell: (firing) => (firing.state ? <StateMark state={firing.state} /> : <span class="warning">{wordOf(firing.outcome)}</span>) },
          { name: "run", wide: true, cell: (firing) => (firing.run ? <RunLink id={firing.run} /> : "–") },
        ]}
      />
    </section>
  );
}

function Details({ schedule }: { schedule: Schedule }) {
  const rows: [string, ComponentChildren][] = [
    ["task", <TaskLink name={schedule.task} />],
    ["trigger", <code>{schedule.trigger}</code>],
    ["zone", schedule.zone],
    ["overlap", schedule.overlap],
    ["catch up", schedule.catch_up],
    ["grace", schedule.grace === null ? "none" : span(schedule.grace)],
    ["timeout", schedule.timeout === null ? "the task's" : span(schedule.timeout)],
    ["queue", schedule.queue],
    ["priority", String(schedule.priority)],
    ["declared by", schedule.owner ? `the code of ${schedule.owner}` : "somebody, here or by command"],
  ];
  return (
    <section>
      <h2>What it does</h2>
      <dl class="details">
        {rows.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {schedule.args !== null && JSON.stringify(schedule.args) !== "{}" && <Json text={JSON.stringify(schedule.args)} label="Arguments" />}
    </section>
  );
}
