/** Draws the rows of the time line: one rectangle per segment, so that the work depends on pixels and not on runs. */

import type { TimelineRow, TimelineRowSegments } from "../../api/types";

export const ROW = 24;
const BAR = 12;
/** A short call is still seen. */
const THINNEST = 2;

const TONES: Record<string, string> = {
  succeeded: "--succeeded",
  failed: "--failed",
  timed_out: "--failed",
  lost: "--failed",
  crashed: "--failed",
  running: "--running",
  planned: "--accent",
  retried: "--warn",
  snoozed: "--queued",
  paused: "--paused",
  cancelled: "--cancelled",
};

/** Return the name of the colour of an outcome. */
export function toneOf(outcome: string): string {
  return TONES[outcome] ?? "--warn";
}

export interface Picture {
  rows: readonly TimelineRow[];
  /** Pixels of the width for which the service made the segments. */
  made: number;
  width: number;
  /** Where now is, in pixels. */
  now: number;
  marks: readonly number[];
  /** What the pointer brushes, in pixels. */
  brush: readonly [number, number] | null;
}

export function draw(canvas: HTMLCanvasElement, picture: Picture): void {
  const ratio = window.devicePixelRatio || 1;
  const height = picture.rows.length * ROW;
  canvas.width = Math.round(picture.width * ratio);
  canvas.height = Math.round(height * ratio);
  const pen = canvas.getContext("2d");
  if (!pen) return;
  const colours = coloursOf(canvas);
  pen.scale(ratio, ratio);
  pen.fillStyle = colours("--rule");
  for (const mark of picture.marks) pen.fillRect(Math.round(mark), 0, 1, height);
  for (let index = 1; index <= picture.rows.length; index += 1) pen.fillRect(0, index * ROW - 1, picture.width, 1);
  drawSegments(pen, picture, colours);
  pen.fillStyle = colours("--ink");
  pen.fillRect(Math.round(picture.now), 0, 1, height);
  if (picture.brush) {
    const [left, right] = picture.brush;
    pen.globalAlpha = 0.16;
    pen.fillStyle = colours("--accent");
    pen.fillRect(Math.min(left, right), 0, Math.abs(right - left), height);
    pen.globalAlpha = 1;
  }
}

/** All segments of a colour in a row of calls: a change of the colour costs more than a rectangle. */
function drawSegments(pen: CanvasRenderingContext2D, picture: Picture, colours: (name: string) => string): void {
  const scale = picture.width / picture.made;
  const byTone = new Map<string, [number, TimelineRowSegments][]>();
  picture.rows.forEach((row, index) => {
    for (const segment of row.segments) {
      const tone = segment.outcome === "planned" ? "planned" : toneOf(segment.outcome);
      const found = byTone.get(tone);
      if (found) found.push([index, segment]);
      else byTone.set(tone, [[index, segment]]);
    }
  });
  for (const [tone, segments] of byTone) {
    const hollow = tone === "planned";
    pen.fillStyle = pen.strokeStyle = colours(hollow ? "--accent" : tone);
    for (const [index, segment] of segments) {
      const left = segment.left * scale;
      const width = Math.max(THINNEST, (segment.right - segment.left) * scale);
      const top = index * ROW + (ROW - BAR) / 2;
      if (hollow) pen.strokeRect(left + 0.5, top + 0.5, Math.max(3, width) - 1, BAR - 1);
      else pen.fillRect(left, top, width, BAR);
    }
  }
}

/** Return what gives the value of a named colour. A pair for light and dark has a value only where it is used. */
function coloursOf(canvas: HTMLCanvasElement): (name: string) => string {
  const known = new Map<string, string>();
  return (name) => {
    let found = known.get(name);
    if (found === undefined) {
      canvas.style.color = `var(${name})`;
      found = getComputedStyle(canvas).color;
      canvas.style.color = "";
      known.set(name, found);
    }
    return found;
  };
}

/** Return the segment of a row at a pixel of the page, or the nearest within three pixels. Segments are sorted by `left`. */
export function segmentAt(row: TimelineRow, pixel: number, scale: number): TimelineRowSegments | null {
  const near = 3 / scale;
  const at = pixel / scale;
  let low = 0;
  let high = row.segments.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((row.segments[middle]?.left ?? 0) <= at + near) low = middle + 1;
    else high = middle;
  }
  for (let index = low - 1; index >= 0 && index > low - 200; index -= 1) {
    const segment = row.segments[index];
    if (segment && segment.right + near >= at) return segment;
  }
  return null;
}
