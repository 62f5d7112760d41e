import { count, counted } from "../../app/format";
import { hrefOf } from "../../app/router";
import { clockOf, type Day } from "./days";
import { dayWords, Marks } from "./marks";

const NAMES = 4;

/** Five weeks, from a Monday on. A day links to its week. */
export function Month({ days, zone, today }: { days: readonly Day[]; zone: string; today: string }) {
  return (
    <ol class="month">
      {days.map((day) => (
        <li key={day.name} data-today={day.name === today} data-past={day.name < today}>
          <a href={hrefOf("/calendar", { from: day.name })} aria-label={`${dayWords(day.name)}: ${counted(day.fires.length, "fire")}`}>
            {dayWords(day.name)}
          </a>
          <Marks day={day} />
          <ul>
            {day.fires.slice(0, NAMES).map((fire) => (
              <li key={fire.at + fire.schedule} title={fire.schedule}>
                <time dateTime={fire.at}>{clockOf(fire.at, zone)}</time> {fire.schedule}
              </li>
            ))}
            {day.fires.length > NAMES && <li class="dim">and {count(day.fires.length - NAMES)} more</li>}
          </ul>
        </li>
      ))}
    </ol>
  );
}
