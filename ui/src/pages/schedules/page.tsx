import { useSignal } from "@preact/signals";
import { ask } from "../../api/client";
import { useResource } from "../../api/resource";
import type { DecisionCount, ScheduleRow } from "../../api/types";
import { counted } from "../../app/format";
import { readNames, taskNames } from "../../app/names";
import { place, search } from "../../app/router";
import { may } from "../../app/session";
import { Empty, Show } from "../../parts/empty";
import { ScheduleLink, TaskLink, WhyLink } from "../../parts/link";
import { Filters } from "../../parts/filters";
import { Exports } from "../../parts/exports";
import { keyOfSchedule } from "../../parts/paused";
import { Head } from "../../parts/page";
import { Strip } from "../../parts/strip";
import { Table } from "../../parts/table";
import { Ago, Time } from "../../parts/time";
import "../../styles/schedules.css";
import { ScheduleActions } from "../schedule/actions";
import { EditDialog } from "../schedule/edit";
import { Bulk } from "./bulk";

export default function SchedulesPage() {
  const adding = useSignal(false);
  const query = place.value.query;
  const schedules = useResource(
    `schedules ${search.value}`,
    async (signal) => {
      void readNames();
      const found = await ask("GET /schedules", { query: { limit: 500, last: 30, q: query.get("q"), task: query.get("task") }, signal });
      const paused = found.items.some((row) => row.state === "paused");
      return { ...found, pauses: paused ? (await ask("GET /decisions", { query: { reason: "paused", limit: 500 }, signal })).items : [] };
    },
    ["schedules", "runs"],
  );
  return (
    <>
      <Head title="Schedules" about={schedules.data.value ? counted(schedules.data.value.items.length, "schedule") : ""}>
        <Exports name="schedules" rows={schedules.data.value?.items ?? []} />
        {may("schedule") && (
          <button type="button" class="primary" onClick={() => (adding.value = true)}>
            New schedule …
          </button>
        )}
      </Head>
      <Filters fields={[{ name: "q", label: "Name or task" }, { name: "task", label: "Task", values: taskNames.value }]} />
      <Show of={schedules}>
        {(found) =>
          found.items.length === 0 && query.size > 0 ? (
            <Empty title="No schedule matches" />
          ) : found.items.length === 0 ? (
            <Empty title="No schedule yet" command="rota schedules put nightly 'daily 02:30 Europe/Berlin' TASK">
              <p>Declare one in code with @app.task(schedule=…), or make one here.</p>
            </Empty>
          ) : (
            <>
              <Schedules rows={found.items} pauses={found.pauses} reload={schedules.reload} />
              <Bulk rows={found.items} reload={schedules.reload} />
            </>
          )
        }
      </Show>
      {adding.value && <EditDialog schedule={null} etag={null} onClose={() => (adding.value = false)} onSaved={schedules.reload} />}
    </>
  );
}

function Schedules({ rows, pauses, reload }: { rows: ScheduleRow[]; pauses: DecisionCount[]; reload: () => void }) {
  return (
    <Table
      label="Schedules"
        cards
      rows={rows}
      keyOf={(row) => row.id}
      columns={[
        {
          name: "schedule",
          cell: (row) => (
            <>
              <ScheduleLink id={row.id} />
              <div class="dim small">
                {row.words}
                {row.task !== row.id && !row.id.startsWith(`${row.task}:`) && (
                  <>
                    {" "}
                    · <TaskLink name={row.task} />
                  </>
                )}
              </div>
            </>
          ),
        },
        { name: "next", cell: (row) => <Next row={row} pause={pauses.find((each) => each.key === keyOfSchedule(row.id))} /> },
        { name: "last outcomes", cell: (row) => <Strip firings={row.firings ?? []} /> },
        { name: "", wide: true, right: true, cell: (row) => <WhyLink subject={row.id} /> },
        { name: "do", right: true, cell: (row) => <ScheduleActions row={row} reload={reload} small /> },
      ]}
    />
  );
}

/** When it fires next; of one that is paused, who has paused it and why. */
function Next({ row, pause }: { row: ScheduleRow; pause: DecisionCount | undefined }) {
  const until = row.paused_until;
  if (row.state === "active" && until === null) {
    return (
      <>
        <Ago at={row.next_at} own={row.zone} />
        <div class="dim small">
          <Time at={row.next_at} own={row.zone} />
        </div>
      </>
    );
  }
  return (
    <span class="state" data-state={row.state === "ended" ? "cancelled" : "paused"}>
      {row.state === "ended" ? "ended" : "paused"}
      {until !== null && <>, on <Ago at={until} own={row.zone} /></>}
      {row.state === "paused" && pause && <> by {pause.by} <Ago at={pause.last_at} /></>}
      {row.note && <div class="dim small" title={row.note}>{row.note}</div>}
    </span>
  );
}
