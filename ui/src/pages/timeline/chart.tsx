import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { TimelineRow, TimelineRowSegments } from "../../api/types";
import { now } from "../../app/clock";
import { counted, instant } from "../../app/format";
import { shownZone, theme } from "../../app/preferences";
import { go, hrefOf } from "../../app/router";
import { ScheduleLink, TaskLink } from "../../parts/link";
import { wordOf } from "../../parts/state";
import { draw, ROW, segmentAt } from "./draw";
import { instantOf, marksOf, pixelOf, type Span } from "./scale";

interface Props {
  by: "task" | "schedule" | "worker";
  rows: readonly TimelineRow[];
  /** Pixels for which the segments were made. */
  made: number;
  span: Span;
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

export function Chart({ by, rows, made, span, onZoom }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const width = useSignal(0);
  const brush = useSignal<[number, number] | null>(null);
  const hit = useSignal<Hit | null>(null);

  useEffect(() => {
    const watcher = new ResizeObserver(([entry]) => (width.value = Math.floor(entry?.contentRect.width ?? 0)));
    if (box.current) watcher.observe(box.current);
    return () => watcher.disconnect();
  }, []);

  const marks = marksOf(span, width.value).map((at) => ({ at, x: pixelOf(at, span, width.value) }));
  const nowAt = pixelOf(now.value, span, width.value);
  void theme.value; // another theme has other colours
  useLayoutEffect(() => {
    if (canvas.current && width.value > 0) {
      draw(canvas.current, { rows, made, width: width.value, now: nowAt, marks: marks.map((mark) => mark.x), brush: brush.value });
    }
  });

  const find = (event: PointerEvent): Hit | null => {
    const at = event.currentTarget as HTMLElement;
    const edge = at.getBoundingClientRect();
    const x = event.clientX - edge.left;
    const row = rows[Math.floor((event.clientY - edge.top) / ROW)];
    const segment = row && segmentAt(row, x, width.value / made);
    return row && segment ? { row, segment, x, y: event.clientY - edge.top } : null;
  };
  const down = (event: PointerEvent) => {
    const canvas = event.currentTarget as HTMLElement;
    canvas.setPointerCapture(event.pointerId);
    const x = event.clientX - canvas.getBoundingClientRect().left;
    brush.value = [x, x];
  };
  const move = (event: PointerEvent) => {
    if (brush.value) brush.value = [brush.value[0], event.clientX - (event.currentTarget as HTMLElement).getBoundingClientRect().left];
    else hit.value = find(event);
  };
  const up = (event: PointerEvent) => {
    const [from, to] = brush.value ?? [0, 0];
    brush.value = null;
    if (Math.abs(to - from) > BRUSH) {
      const [left, right] = [Math.min(from, to), Math.max(from, to)];
      onZoom({ from: instantOf(left, span, width.value), to: instantOf(right, span, width.value) });
      return;
    }
    const found = find(event);
    if (found) go(runsOf(by, found, span, made));
  };

  return (
    <div class="timeline">
      <div class="names">
        <div class="corner" />
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
              {instant(mark.at, shownZone.value, now.value, false)}
            </span>
          ))}
        </div>
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
        {hit.value && <Tip hit={hit.value} span={span} made={made} width={width.value} />}
      </div>
      <details class="astable">
        <summary>The same as a table</summary>
        <AsTable rows={rows} span={span} made={made} />
      </details>
    </div>
  );
}

function Tip({ hit, span, made, width }: { hit: Hit; span: Span; made: number; width: number }) {
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
