import { counted } from "../../app/format";
import { ScheduleLink } from "../../parts/link";
import { dayWords, Marks } from "./marks";
import { clockOf, type Day, type Fire } from "./days";

const MOST = 40;

/** Seven days beside each other: the hours by the seats they need, then each fire. */
export function Week({ days, zone, today }: { days: readonly Day[]; zone: string; today: string }) {
  const most = Math.max(0.01, ...days.flatMap((day) => day.seats));
  return (
    <div class="week">
      {days.map((day) => (
        <section key={day.name} aria-label={dayWords(day.name)} data-today={day.name === today}>
          <h2>
            {day.name === today ? "Today" : dayWords(day.name)}
          </h2>
          <Hours day={day} most={most} />
          <Marks day={day} />
          {day.fires.length === 0 ? (
            <p class="dim">nothing fires</p>
          ) : (
            <ol>
              {day.fires.slice(0, MOST).map((fire, index) => (
                <FireLine key={`${fire.at} ${fire.schedule}`} fire={fire} zone={zone} same={sameMinute(fire, day.fires[index - 1]) || sameMinute(fire, day.fires[index + 1])} />
              ))}
              {day.fires.length > MOST && <li class="dim">and {counted(day.fires.length - MOST, "other fire")}</li>}
            </ol>
          )}
        </section>
      ))}
    </div>
  );
}

function sameMinute(one: Fire, other: Fire | undefined): boolean {
  return other !== undefined && one.at.slice(0, 16) === other.at.slice(0, 16);
}

function FireLine({ fire, zone, same }: { fire: Fire; zone: string; same: boolean }) {
  return (
    <li data-meets={same}>
      <time dateTime={fire.at}>{clockOf(fire.at, zone)}</time> <ScheduleLink id={fire.schedule} />
      {same && <span class="warning" title="Another schedule fires in the same minute"> meets</span>}
      {fire.meets && <span class="warning" title="The run before is unfinished then: this tick makes no run"> overlaps</span>}
    </li>
  );
}

/** The hours of a day as bars: how many seats are needed, on average. */
function Hours({ day, most }: { day: Day; most: number }) {
  const peak = Math.max(...day.seats);
  const hour = day.seats.indexOf(peak);
  const label = peak ? `At most ${peak < 0.1 ? "less than 0.1" : peak.toFixed(1)} seats, from ${String(hour).padStart(2, "0")}:00` : "No seat is needed";
  return (
    <>
      <svg class="hours" viewBox="0 0 120 18" preserveAspectRatio="none" role="img" aria-label={label}>
        <title>{label}</title>
        {day.seats.map((value, at) => {
          const height = value ? Math.max(2, (value / most) * 18) : 0.8;
          return <rect key={at} x={at * 5} y={18 - height} width="4" height={height} data-busy={value > 0} />;
        })}
      </svg>
      <p class="dim peak">{peak ? `up to ${peak < 0.1 ? "0.1" : peak.toFixed(1)} seats` : "no seat"}</p>
    </>
  );
}
