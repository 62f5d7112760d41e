/** The scale of the time line: instants to pixels, and where the axis has marks. */

export interface Span {
  /** Milliseconds since 1970. */
  from: number;
  to: number;
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const STEPS = [
  MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE,
  HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 30 * DAY,
] as const;
export const LEAST = MINUTE;
export const MOST = 400 * DAY;

/** The spans that the page offers: the past, and as much of what is to come. */
export const OFFERED: readonly [string, number][] = [
  ["10 min", 10 * MINUTE],
  ["1 h", HOUR],
  ["6 h", 6 * HOUR],
  ["24 h", DAY],
  ["7 d", 7 * DAY],
];

export function pixelOf(at: number, span: Span, width: number): number {
  return ((at - span.from) / (span.to - span.from)) * width;
}

export function instantOf(pixel: number, span: Span, width: number): number {
  return span.from + (pixel / width) * (span.to - span.from);
}

/** Return the instants of the marks of the axis, at least `room` pixels apart. They are full minutes, hours or days in UTC. */
export function marksOf(span: Span, width: number, room = 90): number[] {
  const least = ((span.to - span.from) / Math.max(1, width)) * room;
  const step = STEPS.find((each) => each >= least) ?? STEPS[STEPS.length - 1]!;
  const found: number[] = [];
  for (let at = Math.ceil(span.from / step) * step; at <= span.to; at += step) found.push(at);
  return found;
}

/** Return a span `factor` times as long around `middle`, within the bounds of the service. */
export function zoomed(span: Span, factor: number, middle = (span.from + span.to) / 2): Span {
  const length = Math.min(MOST, Math.max(LEAST, (span.to - span.from) * factor));
  const share = (middle - span.from) / (span.to - span.from);
  return { from: middle - length * share, to: middle + length * (1 - share) };
}

export function moved(span: Span, share: number): Span {
  const by = (span.to - span.from) * share;
  return { from: span.from + by, to: span.to + by };
}
