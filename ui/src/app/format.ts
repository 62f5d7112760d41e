/** How numbers and times are written. */

const formats = new Map<string, Intl.DateTimeFormat>();

function format(zone: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = zone + JSON.stringify(options);
  let found = formats.get(key);
  if (!found) {
    found = new Intl.DateTimeFormat("en-GB", { timeZone: zone, hourCycle: "h23", ...options });
    formats.set(key, found);
  }
  return found;
}

const CLOCK: Intl.DateTimeFormatOptions = { hour: "2-digit", minute: "2-digit", second: "2-digit" };
const SHORT: Intl.DateTimeFormatOptions = { hour: "2-digit", minute: "2-digit" };
const DAY: Intl.DateTimeFormatOptions = { weekday: "short", day: "numeric", month: "short" };

export function dayOf(at: number, zone: string): string {
  return format(zone, { year: "numeric", month: "2-digit", day: "2-digit" }).format(at);
}

/** Return an instant as people read it: the day only if it is not today. */
export function instant(at: number, zone: string, now: number, seconds = true): string {
  const clock = format(zone, seconds ? CLOCK : SHORT).format(at);
  if (dayOf(at, zone) === dayOf(now, zone)) return clock;
  const year = Math.abs(at - now) > 200 * 86_400_000 ? { year: "numeric" as const } : {};
  return `${format(zone, { ...DAY, ...year }).format(at)}, ${clock}`;
}

/** Return an instant with everything: day, clock, and the name of the zone. */
export function wholeInstant(at: number, zone: string): string {
  return format(zone, { ...DAY, year: "numeric", ...CLOCK, timeZoneName: "short" }).format(at);
}

/** Return a span in at most two units: `1.2 s`, `4 min 10 s`, `3 h 5 min`, `2 d 4 h`. */
export function span(seconds: number): string {
  const size = Math.abs(seconds);
  if (size < 0.001) return "0 s";
  if (size < 1) return `${Math.round(size * 1000)} ms`;
  if (size < 10) return `${size.toFixed(1).replace(/\.0$/, "")} s`;
  if (size < 60) return `${Math.round(size)} s`;
  const whole = Math.round(size);
  const units: [number, string][] = [[86_400, "d"], [3_600, "h"], [60, "min"], [1, "s"]];
  const first = units.findIndex(([unit]) => whole >= unit);
  const [unit, name] = units[first] as [number, string];
  const next = units[first + 1];
  const left = next ? Math.floor((whole % unit) / next[0]) : 0;
  return `${Math.floor(whole / unit)} ${name}${left && next ? ` ${left} ${next[1]}` : ""}`;
}

/** Return a span in one unit, as people say it: `3 min`, `9 h`; a few hours in two: `1 h 20 min`. */
function rough(seconds: number): string {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 6 * 3_600) return span(Math.floor(seconds / 60) * 60);
  if (seconds < 2 * 86_400) return `${Math.floor(seconds / 3_600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

/** Return how far an instant is from now: `in 5 min`, `12 s ago`, `now`. */
export function relative(at: number, now: number): string {
  const seconds = (at - now) / 1000;
  if (Math.abs(seconds) < 1) return "now";
  const text = rough(Math.abs(seconds));
  return seconds > 0 ? `in ${text}` : `${text} ago`;
}

const NUMBER = new Intl.NumberFormat("en-GB");

export function count(value: number, more = false): string {
  return NUMBER.format(value) + (more ? "+" : "");
}

/** Return `1 run` or `5 runs`. */
export function counted(value: number, noun: string, more = false): string {
  return `${count(value, more)} ${noun}${value === 1 && !more ? "" : "s"}`;
}

/** Return the seconds of a text such as `90s`, `2h`, `7d`; null if it is no span. */
export function secondsOf(text: string): number | null {
  const found = /^(\d+(?:\.\d+)?)\s*(s|m|min|h|d|w)$/.exec(text.trim());
  if (!found) return null;
  const unit: Record<string, number> = { s: 1, m: 60, min: 60, h: 3_600, d: 86_400, w: 604_800 };
  return Number(found[1]) * (unit[found[2] ?? "s"] ?? 1);
}
