/** Draws the rows of the time line. */

import type { TimelineRow, TimelineRowSegments } from "../../api/types";
import type { Scale } from "./folds";

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
  scale: Scale;
  width: number;
  marks: readonly number[];
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
  drawSegments(pen, picture, colours, ratio);
  pen.strokeStyle = colours("--accent");
  drawPlanned(pen, picture);
  pen.fillStyle = colours("--paused");
  for (const fold of picture.scale.folds) for (let y = 0; y < height; y += 6) pen.fillRect(Math.round(fold) + 7, y, 2, 3);
}

/**
 * Each row is one line of pixels, stretched to the height of its bars: the work depends on pixels and not on segments,
 * of which there may be 50,000. Failures are written last, so that nothing hides them.
 */
function drawSegments(pen: CanvasRenderingContext2D, picture: Picture, colours: (name: string) => string, ratio: number): void {
  const { rows, scale } = picture;
  const lines = document.createElement("canvas");
  lines.width = Math.max(1, Math.round(picture.width * ratio));
  lines.height = rows.length;
  const ink = lines.getContext("2d", { willReadFrequently: true });
  if (!ink) return;
  const pixelOf = pixelsOf(ink, colours);
  const image = ink.createImageData(lines.width, lines.height);
  const pixels = new Uint32Array(image.data.buffer);
  rows.forEach((row, index) => {
    const write = (segment: TimelineRowSegments, tone: string) => {
      const left = Math.min(lines.width - 1, Math.floor(scale.x(segment.left) * ratio));
      const right = Math.max(left + THINNEST * ratio, Math.round(scale.x(segment.right) * ratio));
      const first = index * lines.width;
      pixels.fill(pixelOf(tone), first + left, first + Math.min(lines.width, right));
    };
    const failures: TimelineRowSegments[] = [];
    for (const segment of row.segments) {
      const tone = toneOf(segment.outcome);
      if (tone === "--failed") failures.push(segment);
      else if (segment.outcome !== "planned") write(segment, tone);
    }
    for (const segment of failures) write(segment, "--failed");
  });
  ink.putImageData(image, 0, 0);
  pen.imageSmoothingEnabled = false;
  rows.forEach((_, index) => pen.drawImage(lines, 0, index, lines.width, 1, 0, index * ROW + (ROW - BAR) / 2, picture.width, BAR));
}

/** Fires to come are hollow. */
function drawPlanned(pen: CanvasRenderingContext2D, { rows, scale }: Picture): void {
  rows.forEach((row, index) => {
    for (const segment of row.segments) {
      if (segment.outcome !== "planned") continue;
      const left = scale.x(segment.left);
      const width = Math.max(3, scale.x(segment.right) - left);
      pen.strokeRect(left + 0.5, index * ROW + (ROW - BAR) / 2 + 0.5, width - 1, BAR - 1);
    }
  });
}

/** Return what gives a named colour as the four bytes of a pixel. */
function pixelsOf(ink: CanvasRenderingContext2D, colours: (name: string) => string): (name: string) => number {
  const known = new Map<string, number>();
  return (name) => {
    let found = known.get(name);
    if (found === undefined) {
      ink.fillStyle = colours(name);
      ink.fillRect(0, 0, 1, 1);
      found = new Uint32Array(ink.getImageData(0, 0, 1, 1).data.buffer)[0] ?? 0;
      known.set(name, found);
    }
    return found;
  };
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
export function segmentAt(row: TimelineRow, pixel: number, scale: Scale): TimelineRowSegments | null {
  const at = scale.column(pixel);
  const near = scale.column(pixel + 3) - at;
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
