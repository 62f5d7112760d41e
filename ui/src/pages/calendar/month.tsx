import { counted } from "../../app/format";
import { hrefOf } from "../../app/router";
import type { Day } from "./days";
import { dayWords, Marks } from "./marks";

const NAMES = 3;

/** Five weeks, from a Monday on. A day links to its week. */
export function Month({ days, today }: { days: readonly Day[]; today: string }) {
  return (
    <ol class="month">
      {days.map((day) => (
        <li key={day.name} data-today={day.name === today} data-past={day.name < today}>
          <a href={hrefOf("/calendar", { from: day.name })} aria-label={`${dayWords(day.name)}: ${counted(day.fires.length, "fire")}`}>
            {dayWords(day.name)}
          </a>
          {day.fires.length > 0 && <strong>{counted(day.fires.length, "fire")}</strong>}
          <Marks day={day} />
          <ul>
            {[...new Set(day.fires.map((fire) => fire.schedule))].slice(0, NAMES).map((name) => (
              <li key={name} class="dim">
                {name}
              </li>
            ))}
          </ul>
        </li>
      ))}
    </ol>
  );
}
