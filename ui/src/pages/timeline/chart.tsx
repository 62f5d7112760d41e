import { useSignal, type ReadonlySignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type { TimelineRow, TimelineRowSegments } from "../../api/types";
import { now } from "../../app/clock";
import { counted, instant } from "../../app/format";
import { scheme, shownZone } from "../../app/preferences";
import { go, hrefOf } from "../../app/router";
import { ScheduleLink, TaskLink } from "../../parts/link";
import { wordOf } from "../../parts/state";
import { draw, ROW, segmentAt } from "./draw";
import { gapsOf, scaleOf, type Scale } from "./folds";
import { instantOf, marksOf, pixelOf, type Span } from "./scale";

interface Props {
  by: "task" | "schedule" | "worker";
  rows: readonly TimelineRow[];
  /** Pixels for which the segments were made. */
  made: number;
  span: Span;
  /** Are gaps in which nothing ran folded? */
  folds: boolean;
  /** What is drawn above the rows, in the same scale. */
  above: (scale: Scale, width: number) => ComponentChildren;
  onZoom: (span: Span) => void;
}

interface Hit {
  row: TimelineRow;
  segment: TimelineRowSegments;
  x: number;
  y: number;
}

/** Pixels that the pointer must move before it brushes. */
const BRUSH = 5;

export function Chart({ by, rows, made, span, folds, above, onZoom }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const width = useSignal(0);
  const brush = useSignal<[number, number] | null>(null);
  const hit = useSignal<Hit | null>(null);
  const open = useSignal(false);

  useEffect(() => {
    const watcher = new ResizeObserver(([entry]) => (width.value = Math.floor(entry?.contentRect.width ?? 0)));
    if (box.current) watcher.observe(box.current);
    return () => watcher.disconnect();
  }, []);

  const gaps = useMemo(() => (folds ? gapsOf(rows, made) : []), [rows, made, folds]);
  const scale = useMemo(() => scaleOf(made, width.value, gaps), [made, width.value, gaps]);
  const marks = useMemo(() => {
    const at = (instant: number) => ({ at: instant, x: scale.x(pixelOf(instant, span, made)) });
    return apart(marksOf(span, width.value).map(at));
  }, [span.from, span.to, made, scale]);
  useLayoutEffect(() => {
    if (canvas.current && width.value > 0) {
      draw(canvas.current, { rows, scale, width: width.value, marks: marks.map((mark) => mark.x) });
    }
  }, [rows, scale, marks, scheme.value]);

  const find = (event: PointerEvent): Hit | null => {
    const at = event.currentTarget as HTMLElement;
    const edge = at.getBoundingClientRect();
    const x = event.clientX - edge.left;
    const row = rows[Math.floor((event.clientY - edge.top) / ROW)];
    const segment = row && segmentAt(row, x, scale);
    return row && segment ? { row, segment, x, y: event.clientY - edge.top } : null;
  };
  const down = (event: PointerEvent) => {
    const canvas = event.currentTarget as HTMLElement;
    canvas.setPointerCapture(event.pointerId);
    const x = event.clientX - canvas.getBoundingClientRect().left;
    brush.value = [x, x];
  };
  const move = (event: PointerEvent) => {
    const begun = brush.peek();
    if (begun) brush.value = [begun[0], event.clientX - (event.currentTarget as HTMLElement).getBoundingClientRect().left];
    else hit.value = find(event);
  };
  const up = (event: PointerEvent) => {
    const [from, to] = brush.peek() ?? [0, 0];
    brush.value = null;
    if (Math.abs(to - from) > BRUSH) {
      const [left, right] = [Math.min(from, to), Math.max(from, to)];
      onZoom({ from: instantOf(scale.column(left), span, made), to: instantOf(scale.column(right), span, made) });
      return;
    }
    const found = find(event);
    if (found) go(runsOf(by, found, span, made));
  };

  return (
    <div class="timeline">
      <div class="names">
        <div class="corner" />
        <div class="demandname" />
        {rows.map((row) => (
          <div key={row.name} class="name" title={row.name}>
            {by === "task" ? <TaskLink name={row.name} /> : by === "schedule" ? <ScheduleLink id={row.name} /> : <a href={hrefOf("/runs", { worker: row.name })}>{row.name}</a>}
          </div>
        ))}
      </div>
      <div class="picture" ref={box}>
        <div class="axis" aria-hidden="true">
          {marks.map((mark) => (
            <span key={mark.at} style={{ left: `${mark.x}px` }}>
              {instant(mark.at, shownZone.value, now.peek(), false)}
            </span>
          ))}
        </div>
        {width.value > 0 && above(scale, width.value)}
        <div class="rows">
          <canvas
            ref={canvas}
            role="img"
            aria-label="The time line as a picture; the table below says the same"
            style={{ height: `${rows.length * ROW}px` }}
            onPointerDown={down}
            onPointerMove={move}
            onPointerUp={up}
            onPointerLeave={() => (hit.value = null)}
          />
          <NowLine x={(instant) => scale.x(pixelOf(instant, span, made))} />
          <Brushed brush={brush} />
        </div>
        <Tip hit={hit} span={span} made={made} width={width} />
      </div>
      <details class="astable" onToggle={(event) => (open.value = event.currentTarget.open)}>
        <summary>The same as a table</summary>
        {open.value && <AsTable rows={rows} span={span} made={made} />}
      </details>
    </div>
  );
}

/** Leave out marks that would stand on others: a fold puts them close together. */
function apart<T extends { x: number }>(marks: readonly T[]): T[] {
  let last = -Infinity;
  return marks.filter(({ x }) => {
    if (x - last < 60) return false;
    last = x;
    return true;
  });
}

/** What moves lies above the picture, so that the picture is drawn only when its data or its size change. */
function NowLine({ x }: { x: (instant: number) => number }) {
  return <div class="nowline" style={{ transform: `translateX(${Math.round(x(now.value))}px)` }} />;
}

/** What the pointer brushes, in pixels. */
function Brushed({ brush }: { brush: ReadonlySignal<readonly [number, number] | null> }) {
  if (!brush.value) return null;
  const [one, two] = brush.value;
  return <div class="brushed" style={{ transform: `translateX(${Math.min(one, two)}px) scaleX(${Math.abs(two - one)})` }} />;
}

interface TipProps {
  hit: ReadonlySignal<Hit | null>;
  span: Span;
  made: number;
  width: ReadonlySignal<number>;
}

function Tip({ hit: { value: hit }, span, made, width: { value: width } }: TipProps) {
  if (!hit) return null;
  const { segment } = hit;
  return (
    <div class="tip" style={{ left: `${Math.min(hit.x + 12, width - 230)}px`, top: `${hit.y + 34}px` }}>
      <strong>{hit.row.name}</strong>
      <span>
        {counted(segment.count, segment.outcome === "planned" ? "fire" : "call")}, {wordOf(segment.outcome)}
      </span>
      <span class="dim">{between(segment, span, made)}</span>
    </div>
  );
}

function AsTable({ rows, span, made }: { rows: readonly TimelineRow[]; span: Span; made: number }) {
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">name</th>
          <th scope="col">when</th>
          <th scope="col">outcome</th>
          <th scope="col" class="right">calls</th>
        </tr>
      </thead>
      <tbody>
        {rows.flatMap((row) =>
          row.segments.slice(0, 50).map((segment, index) => (
            <tr key={`${row.name} ${index}`}>
              <td>{row.name}</td>
              <td>{between(segment, span, made)}</td>
              <td>{wordOf(segment.outcome)}</td>
              <td class="right">{segment.count}</td>
            </tr>
          )),
        )}
      </tbody>
    </table>
  );
}

function between(segment: TimelineRowSegments, span: Span, made: number): string {
  const say = (pixel: number) => instant(instantOf(pixel, span, made), shownZone.value, now.peek());
  const [from, to] = [say(segment.left), say(segment.right)];
  return from === to ? from : `${from} – ${to}`;
}

/** Return the page of the runs behind a segment. */
function runsOf(by: Props["by"], { row, segment }: Hit, span: Span, made: number): string {
  if (segment.outcome === "planned") return `/${by}s/${encodeURIComponent(row.name)}`;
  const query = new URLSearchParams({
    [by]: row.name,
    since: new Date(instantOf(segment.left - 1, span, made)).toISOString(),
    until: new Date(instantOf(segment.right + 1, span, made)).toISOString(),
  });
  return `/runs?${query}`;
}
