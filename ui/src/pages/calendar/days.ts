/** Days of a calendar in a zone: what fires on each, what meets, and where a clock changes. */

export interface Fire {
  at: string;
  schedule: string;
  task: string;
  meets: boolean;
}

export interface Change {
  zone: string;
  /** Minutes by which the clock jumps: 60 in spring, -60 in autumn. */
  minutes: number;
}

export interface Day {
  /** Such as 2026-11-18. */
  name: string;
  fires: Fire[];
  /** Minutes in which several schedules fire. */
  collisions: number;
  changes: Change[];
  /** Seats that are needed in each hour, on average. */
  seats: number[];
}

const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(zone: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = zone + JSON.stringify(options);
  let found = formats.get(key);
  if (!found) formats.set(key, (found = new Intl.DateTimeFormat("en-CA", { timeZone: zone, ...options })));
  return found;
}

/** Return the day of an instant in a zone, such as 2026-11-18. */
export function dayOf(at: number, zone: string): string {
  return formatOf(zone, { year: "numeric", month: "2-digit", day: "2-digit" }).format(at);
}

/** Return the time of day of an instant in a zone, such as 02:30. */
export function clockOf(at: string, zone: string): string {
  return formatOf(zone, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" }).format(Date.parse(at));
}

/** Return the name of the day `n` days after another. */
export function after(day: string, n: number): string {
  return new Date(Date.parse(`${day}T12:00:00Z`) + n * 86_400_000).toISOString().slice(0, 10);
}

/** Return how many days before the day its week began, on a Monday. */
export function sinceMonday(day: string): number {
  return (new Date(`${day}T12:00:00Z`).getUTCDay() + 6) % 7;
}

function offsetOf(at: number, zone: string): number {
  const text = formatOf(zone, { timeZoneName: "longOffset" }).formatToParts(at).find((part) => part.type === "timeZoneName")?.value ?? "";
  const found = /([+-])(\d\d):(\d\d)/.exec(text);
  return found ? (found[1] === "-" ? -1 : 1) * (Number(found[2]) * 60 + Number(found[3])) : 0;
}

/** Return the clock changes of a day in some zones. */
export function changesOf(day: string, zones: Iterable<string>): Change[] {
  const noon = Date.parse(`${day}T12:00:00Z`);
  return [...zones]
    .map((zone) => ({ zone, minutes: offsetOf(noon + 12 * 3_600_000, zone) - offsetOf(noon - 12 * 3_600_000, zone) }))
    .filter((each) => each.minutes !== 0);
}

interface Found {
  fires: readonly Fire[];
  collisions: readonly { minutes: readonly string[] }[];
  hours: readonly { day: string; hour: number; seats: number }[];
}

/** Return `count` days from `first` on. */
export function daysOf(first: string, count: number, found: Found, zone: string, zones: Iterable<string>): Day[] {
  const all = [...new Set([zone, ...zones])];
  const days = Array.from({ length: count }, (_, n): Day => {
    const name = after(first, n);
    return { name, fires: [], collisions: 0, changes: changesOf(name, all), seats: new Array<number>(24).fill(0) };
  });
  const byName = new Map(days.map((day) => [day.name, day]));
  for (const fire of found.fires) byName.get(dayOf(Date.parse(fire.at), zone))?.fires.push(fire);
  for (const met of found.collisions) {
    for (const minute of met.minutes) {
      const day = byName.get(dayOf(Date.parse(minute), zone));
      if (day) day.collisions += 1;
    }
  }
  for (const hour of found.hours) {
    const day = byName.get(hour.day);
    if (day) day.seats[hour.hour] = hour.seats;
  }
  return days;
}
