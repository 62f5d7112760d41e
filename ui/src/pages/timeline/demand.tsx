import type { Stat } from "../../api/types";
import { span as spanText } from "../../app/format";
import type { Scale } from "./folds";
import type { Span } from "./scale";

export interface Hour {
  day: string;
  hour: number;
  seats: number;
}

interface Props {
  stats: readonly Stat[];
  /** What the schedules will need, by hours in UTC. */
  hours: readonly Hour[];
  /** Seats of all workers. */
  seats: number;
  span: Span;
  scale: Scale;
  made: number;
  width: number;
  now: number;
}

const HEIGHT = 44;
const MINUTE = 60_000;
const HOUR = 3_600_000;

/** How many seats were busy, and how many the schedules will need: above the rows, in the same time. */
export function Demand({ stats, hours, seats, span, scale, made, width, now }: Props) {
  const past = busyOf(stats).filter(({ at }) => at >= span.from - MINUTE && at < Math.min(span.to, now));
  const coming = hours.map(({ day, hour, seats: value }) => ({ at: Date.parse(`${day}T${String(hour).padStart(2, "0")}:00:00Z`), value })).filter(({ at }) => at + HOUR > now && at < span.to);
  const peak = Math.max(...past.map((each) => each.value), ...coming.map((each) => each.value), 0);
  const most = Math.max(peak * 1.15, 0.1);
  const x = (at: number) => scale.x(Math.max(0, Math.min(made, ((at - span.from) / (span.to - span.from)) * made)));
  const y = (value: number) => HEIGHT - (Math.min(value, most) / most) * (HEIGHT - 4);
  const label = `Seats: at most ${peak.toFixed(1)} were or will be busy, of ${seats}`;
  return (
    <figure class="demand">
      <figcaption>
        busy seats{" "}
        <span class="dim">
          up to {peak < 0.05 ? "0" : peak.toFixed(1)} of {seats}
        </span>
      </figcaption>
      <svg width={width} height={HEIGHT} viewBox={`0 0 ${width} ${HEIGHT}`} role="img" aria-label={label}>
        <path class="past" d={stepsOf(past, MINUTE, x, y)}>
          <title>{`busy, by the minute; ${spanText((span.to - span.from) / 1000)} in all`}</title>
        </path>
        <path class="coming" d={stepsOf(coming.map((each) => ({ ...each, at: Math.max(each.at, now) })), HOUR, x, y)} />
        {seats > 0 && seats <= most && <line x1="0" x2={width} y1={y(seats)} y2={y(seats)} />}
      </svg>
    </figure>
  );
}

/** Return how many seats were busy in each minute, on average. */
function busyOf(stats: readonly Stat[]): { at: number; value: number }[] {
  const found = new Map<number, number>();
  for (const stat of stats) {
    const at = Date.parse(stat.minute);
    found.set(at, (found.get(at) ?? 0) + stat.run_seconds / 60);
  }
  return [...found].sort((one, two) => one[0] - two[0]).map(([at, value]) => ({ at, value }));
}

function stepsOf(points: readonly { at: number; value: number }[], length: number, x: (at: number) => number, y: (value: number) => number): string {
  return points.map(({ at, value }) => `M${x(at).toFixed(1)} ${HEIGHT}V${y(value).toFixed(1)}H${Math.max(x(at) + 1, x(at + length)).toFixed(1)}V${HEIGHT}Z`).join("");
}
