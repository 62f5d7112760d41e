import { now } from "../app/clock";
import { instant, relative, span, wholeInstant } from "../app/format";
import { MY_ZONE, shownZone, zone } from "../app/preferences";

/** An instant. `own`: the zone of the schedule that it belongs to. The title has it in every zone. */
export function Time({ at, own, seconds = true }: { at: string | null; own?: string; seconds?: boolean }) {
  if (at === null) return <span class="dim">–</span>;
  const ms = Date.parse(at);
  const shown = own && zone.value === "schedule" ? own : shownZone.value;
  return (
    <time dateTime={at} title={titleOf(ms, own)}>
      {instant(ms, shown, now.value, seconds)}
    </time>
  );
}

/** How long ago an instant was, or how long until it comes. */
export function Ago({ at, own }: { at: string | null; own?: string }) {
  if (at === null) return <span class="dim">–</span>;
  const ms = Date.parse(at);
  return (
    <time dateTime={at} title={titleOf(ms, own)}>
      {relative(ms, now.value)}
    </time>
  );
}

/** The time from one instant to another, or until now. */
export function Lasting({ from, to }: { from: string; to?: string | null }) {
  const end = to ? Date.parse(to) : now.value;
  return <>{span(Math.max(0, end - Date.parse(from)) / 1000)}</>;
}

/** A list writes its times again each second, and their titles do not change. */
const titles = new Map<string, string>();
const MOST = 2_000;

function titleOf(ms: number, own?: string): string {
  const name = `${ms} ${own ?? ""}`;
  let found = titles.get(name);
  if (found === undefined) {
    if (titles.size >= MOST) titles.clear();
    const zones = new Set([...(own ? [own] : []), MY_ZONE, "UTC"]);
    found = [...zones].map((each) => `${wholeInstant(ms, each)} (${each})`).join("\n");
    titles.set(name, found);
  }
  return found;
}
