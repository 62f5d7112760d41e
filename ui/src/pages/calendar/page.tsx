import { ask } from "../../api/client";
import { useResource } from "../../api/resource";
import { now } from "../../app/clock";
import { count, counted } from "../../app/format";
import { shownZone } from "../../app/preferences";
import { place, setQuery } from "../../app/router";
import { Views } from "../../parts/bar";
import { Empty, Show } from "../../parts/empty";
import { ScheduleLink } from "../../parts/link";
import { Head } from "../../parts/page";
import "../../styles/calendar.css";
import { after, dayOf, daysOf, sinceMonday, type Fire } from "./days";
import { Month } from "./month";
import { Week } from "./week";

const LONGEST = 366;

/** What will fire in a week or a month: collisions, clock changes, and how many seats each hour needs. */
export default function CalendarPage() {
  const query = place.value.query;
  const view = query.get("view") === "month" ? "month" : "week";
  const zone = shownZone.value;
  const today = dayOf(now.value, zone);
  const asked = query.get("from") ?? "";
  const from = /^\d{4}-\d\d-\d\d$/.test(asked) && asked > today ? asked : today;
  const first = view === "month" ? after(from, -sinceMonday(from)) : from;
  const length = view === "month" ? 35 : 7;
  const ahead = Math.round((Date.parse(first) - Date.parse(today)) / 86_400_000);
  const days = Math.max(1, Math.min(LONGEST, ahead + length + 1));
  const found = useResource(
    `${days} ${zone}`,
    async (signal) => {
      const [preview, schedules] = await Promise.all([
        ask("GET /preview", { query: { days, tz: zone }, signal }),
        ask("GET /schedules", { query: { limit: 500 }, signal }),
      ]);
      return { preview, zones: new Set(schedules.items.map((row) => row.zone)) };
    },
    ["schedules"],
  );
  const move = (by: number) => setQuery({ from: after(first, by) > today ? after(first, by) : null });
  return (
    <>
      <Head title="Calendar" about={`What will fire, in ${zone}. Press z for another zone.`}>
        <Views label="View" of={[["week", "Week"], ["month", "Month"]]} chosen={view} onChoose={(value) => setQuery({ view: value === "week" ? null : value })} />
        <div class="row" role="group" aria-label="Move">
          <button type="button" class="small" disabled={first <= today} onClick={() => move(-length)}>
            ← Earlier
          </button>
          <button type="button" class="small" disabled={from === today} onClick={() => setQuery({ from: null })}>
            Today
          </button>
          <button type="button" class="small" disabled={ahead + 2 * length > LONGEST} onClick={() => move(length)}>
            Later →
          </button>
        </div>
      </Head>
      <Show of={found}>
        {({ preview, zones }) => {
          const fires = preview.fires as Fire[];
          const frequent = (preview.frequent ?? []) as { schedule: string; per_day: number }[];
          if (fires.length === 0 && frequent.length === 0) {
            return (
              <Empty title="Nothing will fire" command="rota schedules put nightly 'daily 02:30 Europe/Berlin' TASK">
                <p>Schedules that fire appear here, with those that meet in the same minute.</p>
              </Empty>
            );
          }
          const shown = daysOf(first, length, preview as never, zone, zones);
          return (
            <>
              <Frequent rows={frequent} />
              {preview.until < preview.to && <p class="banner">There are more fires than one page lists: the last days are not whole.</p>}
              {view === "week" ? <Week days={shown} zone={zone} today={today} /> : <Month days={shown} zone={zone} today={today} />}
              <Left names={preview.paused ?? []} word="paused" />
              <Left names={preview.disabled ?? []} word="of disabled tasks" />
            </>
          );
        }}
      </Show>
    </>
  );
}

function Frequent({ rows }: { rows: { schedule: string; per_day: number }[] }) {
  if (rows.length === 0) return null;
  return (
    <p class="frequent">
      <span class="dim">Too often to list:</span>{" "}
      {rows.map((row) => (
        <span key={row.schedule} class="pill">
          <ScheduleLink id={row.schedule} /> {count(row.per_day)} a day
        </span>
      ))}
    </p>
  );
}

function Left({ names, word }: { names: readonly string[]; word: string }) {
  if (names.length === 0) return null;
  return (
    <p class="dim part">
      {counted(names.length, "schedule")} {word}: {names.map((name) => <ScheduleLink key={name} id={name} />)}
    </p>
  );
}
