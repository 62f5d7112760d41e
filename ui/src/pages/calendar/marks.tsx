import { counted, span } from "../../app/format";
import type { Day } from "./days";

export function dayWords(name: string): string {
  return new Intl.DateTimeFormat("en-GB", { timeZone: "UTC", weekday: "short", day: "numeric", month: "short" }).format(Date.parse(`${name}T12:00:00Z`));
}

/** What is special about a day: schedules that meet, and clocks that change. */
export function Marks({ day }: { day: Day }) {
  return (
    <>
      {day.collisions > 0 && <p class="warning">{counted(day.collisions, "minute")} with several fires</p>}
      {day.changes.map((change) => (
        <p key={change.zone} class="clockchange">
          {change.zone}: the clock goes {change.minutes > 0 ? "forward" : "back"} {span(Math.abs(change.minutes) * 60)}
        </p>
      ))}
    </>
  );
}
