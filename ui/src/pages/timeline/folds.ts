/** Where the columns of the answer stand on the screen. Long gaps in which nothing ran can be folded. */

import type { TimelineRow } from "../../api/types";

export interface Scale {
  x: (column: number) => number;
  column: (x: number) => number;
  /** Where folds are, in pixels. */
  folds: readonly number[];
}

type Gap = readonly [number, number];

/** Pixels that a fold has. */
const FOLD = 16;
/** The share of the width from which on a gap is folded, and the share that stays beside what ran. */
const LEAST = 0.06;
const MARGIN = 0.01;

/** Return the gaps in which no row has a call, as columns. */
export function gapsOf(rows: readonly TimelineRow[], made: number): Gap[] {
  const busy = rows.flatMap((row) => row.segments.map((segment): Gap => [segment.left, segment.right])).sort((one, two) => one[0] - two[0]);
  const found: Gap[] = [];
  const margin = made * MARGIN;
  let end = 0;
  const note = (from: number, to: number) => {
    if (to - from > made * LEAST) found.push([from === 0 ? 0 : from + margin, to === made ? made : to - margin]);
  };
  for (const [left, right] of busy) {
    note(end, left);
    end = Math.max(end, right);
  }
  note(end, made);
  return found;
}

/** Return the scale of `made` columns over `width` pixels, with these gaps folded. */
export function scaleOf(made: number, width: number, gaps: readonly Gap[] = []): Scale {
  const folded = gaps.reduce((sum, [from, to]) => sum + to - from, 0);
  const factor = Math.max(0, width - gaps.length * FOLD) / Math.max(1, made - folded);
  const knots: [number, number][] = [[0, 0]];
  for (const [from, to] of gaps) {
    const [column, x] = knots.at(-1) as [number, number];
    const begin = x + (from - column) * factor;
    knots.push([from, begin], [to, begin + FOLD]);
  }
  const [column, x] = knots.at(-1) as [number, number];
  knots.push([made, x + (made - column) * factor]);
  return {
    x: (at) => between(knots, at, 0, 1),
    column: (at) => between(knots, at, 1, 0),
    folds: gaps.map(([from]) => between(knots, from, 0, 1)),
  };
}

function between(knots: readonly [number, number][], at: number, given: 0 | 1, wanted: 0 | 1): number {
  let index = 1;
  while (index < knots.length - 1 && (knots[index]?.[given] ?? 0) < at) index += 1;
  const one: Gap = knots[index - 1] ?? [0, 0];
  const two: Gap = knots[index] ?? [0, 0];
  const length = two[given] - one[given];
  return length > 0 ? one[wanted] + ((at - one[given]) / length) * (two[wanted] - one[wanted]) : two[wanted];
}
