import { useSignal } from "@preact/signals";
import { ask } from "../../api/client";
import { useResource } from "../../api/resource";
import type { ScheduleRow } from "../../api/types";
import { counted } from "../../app/format";
import { readNames, taskNames } from "../../app/names";
import { place, search } from "../../app/router";
import { may } from "../../app/session";
import { Empty, Show } from "../../parts/empty";
import { ScheduleLink, TaskLink, WhyLink } from "../../parts/link";
import { Filters } from "../../parts/filters";
import { Exports } from "../../parts/exports";
import { Head } from "../../parts/page";
import { Strip } from "../../parts/strip";
import { Table } from "../../parts/table";
import { Ago, Time } from "../../parts/time";
import "../../styles/schedules.css";
import { isPostponed, ScheduleActions } from "../schedule/actions";
import { EditDialog } from "../schedule/edit";
import { Bulk } from "./bulk";

export default function SchedulesPage() {
  const adding = useSignal(false);
  const query = place.value.query;
  const schedules = useResource(
    `schedules ${search.value}`,
    (signal) => {
      void readNames();
      return ask("GET /schedules", { query: { limit: 500, last: 30, q: query.get("q"), task: query.get("task") }, signal });
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
              <Schedules rows={found.items} reload={schedules.reload} />
              <Bulk rows={found.items} reload={schedules.reload} />
            </>
          )
        }
      </Show>
      {adding.value && <EditDialog schedule={null} etag={null} onClose={() => (adding.value = false)} onSaved={schedules.reload} />}
    </>
  );
}

function Schedules({ rows, reload }: { rows: ScheduleRow[]; reload: () => void }) {
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
        { name: "next", cell: (row) => <Next row={row} /> },
        { name: "last outcomes", cell: (row) => <Strip firings={row.firings ?? []} /> },
        { name: "", wide: true, right: true, cell: (row) => <WhyLink subject={row.id} /> },
        { name: "do", cell: (row) => <ScheduleActions row={row} reload={reload} small /> },
      ]}
    />
  );
}

function Next({ row }: { row: ScheduleRow }) {
  if (row.state !== "active") {
    return (
      <span class="state" data-state="paused">
        {row.state}
        {row.note && <div class="dim small">{row.note}</div>}
      </span>
    );
  }
  return (
    <>
      {isPostponed(row) && (
        <span class="state" data-state="paused">
          paused, on{" "}
        </span>
      )}
      <Ago at={row.next_at} own={row.zone} />
      <div class="dim small" title={row.note ?? ""}>
        {isPostponed(row) ? row.note : <Time at={row.next_at} own={row.zone} />}
      </div>
    </>
  );
}
