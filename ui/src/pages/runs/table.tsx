import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { now } from "../../app/clock";
import { density, withoutColumns } from "../../app/preferences";
import { hrefOf, place } from "../../app/router";
import { shortId } from "../../parts/link";
import { StateMark } from "../../parts/state";
import { Ago, Lasting } from "../../parts/time";
import type { RunList } from "./list";
import type { Row } from "./rows";
import type { Selection } from "./selection";

const WHEN = { created: "made", due: "due", finished: "ended" };

function orderHere(): keyof typeof WHEN {
  const order = place.peek().query.get("order");
  return order === "due" || order === "finished" ? order : "created";
}

/** Rows beyond the screen on either side, and the most rows that exist unless the screen itself has more. */
const BEYOND = 8;
const MOST = 60;
const NEAR_END = 40;

/** A phone shows a run in two lines. */
const NARROW = window.matchMedia("(max-width: 560px)");

/** All rows have one height, so that only those on the screen have to exist. */
function heightOf(): number {
  if (NARROW.matches) return 52;
  return density.value === "roomy" ? 38 : 30;
}

function sizeOfScreen() {
  return { wide: window.innerWidth, tall: window.innerHeight };
}

/** Rows are used again for other runs as they leave the screen: the focus does not go with them. */
function leaveBefore(body: HTMLElement | null, from: number, to: number): void {
  const held = document.activeElement;
  if (!(held instanceof HTMLElement) || !body?.contains(held)) return;
  const index = Number(held.closest("tr")?.getAttribute("aria-rowindex")) - 2;
  if (index < from || index >= to) held.blur();
}

export function RunTable({ list, selection }: { list: RunList; selection: Selection }) {
  const body = useRef<HTMLTableSectionElement>(null);
  const first = useSignal(0);
  const rows = list.rows.value;
  const screen = useSignal(sizeOfScreen());
  const height = heightOf();
  const seen = Math.ceil(screen.value.tall / height);
  const shown = Math.max(seen + 2, Math.min(MOST - 2, seen + 2 * BEYOND));

  useEffect(() => {
    function onScroll(): void {
      const top = body.current?.getBoundingClientRect().top ?? 0;
      const at = Math.max(0, Math.floor(-top / height) - BEYOND);
      if (at !== first.peek()) {
        leaveBefore(body.current, at, at + shown);
        first.value = at;
      }
      if (at + shown + NEAR_END > list.rows.peek().length) void list.more();
    }
    function onResize(): void {
      screen.value = sizeOfScreen();
      onScroll();
    }
    onScroll();
    window.addEventListener("scroll", onScroll, { passive: true });
    window.addEventListener("resize", onResize);
    return () => {
      window.removeEventListener("scroll", onScroll);
      window.removeEventListener("resize", onResize);
    };
  }, [list, height, shown, rows.length]);

  const from = Math.min(first.value, Math.max(0, rows.length - shown));
  const window_ = rows.slice(from, from + shown);
  return (
    <table class="runs" data-without={withoutColumns.value} role="grid" aria-label="Runs" aria-rowcount={list.ended.value ? rows.length + 1 : -1} aria-multiselectable="true">
      <thead role="rowgroup">
        <tr role="row">
          <th role="columnheader" scope="col" class="c-x">
            <span class="hidden">select</span>
          </th>
          <th role="columnheader" scope="col" class="c-state">state</th>
          <th role="columnheader" scope="col" class="c-task">task</th>
          <th role="columnheader" scope="col" class="c-key extra">key</th>
          <th role="columnheader" scope="col" class="c-detail">outcome and arguments</th>
          <th role="columnheader" scope="col" class="c-when">{WHEN[orderHere()]}</th>
          <th role="columnheader" scope="col" class="c-took right extra">took</th>
          <th role="columnheader" scope="col" class="c-tries right extra">claims</th>
          <th role="columnheader" scope="col" class="c-id">run</th>
        </tr>
      </thead>
      <tbody role="rowgroup" ref={body}>
        <Spacer rows={from} height={height} />
        {window_.map((row, index) => (
          <RunRow key={(from + index) % shown} row={row} index={from + index} list={list} selection={selection} />
        ))}
        <Spacer rows={Math.max(0, rows.length - from - window_.length)} height={height} />
      </tbody>
    </table>
  );
}

function Spacer({ rows, height }: { rows: number; height: number }) {
  return rows ? (
    <tr class="spacer" aria-hidden="true">
      <td style={{ height: `${rows * height}px` }} />
    </tr>
  ) : null;
}

interface RowProps {
  row: Row;
  index: number;
  list: RunList;
  selection: Selection;
}

function RunRow({ row, index, list, selection }: RowProps) {
  const selected = selection.ids.value.has(row.id);
  const flashes = Date.now() - row.changedAt < 1_200;
  return (
    <tr
      role="row"
      class={flashes ? "flash" : undefined}
      aria-rowindex={index + 2}
      aria-selected={selected}
      data-cursor={selection.cursor.value === index}
      onClick={(event) => event.shiftKey && selection.extend(list.rows.peek(), index)}
    >
      <td role="gridcell" class="c-x">
        <input
          type="checkbox"
          aria-label={`Select ${row.task} ${shortId(row.id)}`}
          checked={selected}
          onClick={(event) => {
            if (event.shiftKey) return;
            selection.toggle(row.id, index);
          }}
        />
      </td>
      <td role="gridcell" class="c-state">
        <StateMark state={row.state} />
      </td>
      <td role="gridcell" class="c-task">
        <a href={hrefOf(`/runs/${encodeURIComponent(row.id)}`)}>{row.task}</a>
      </td>
      <td role="gridcell" class="c-key extra" title={row.key ?? ""}><Key row={row} /></td>
      <td role="gridcell" class="c-detail" title={`${row.detail}\n${row.args}`}>
        {row.share !== null && <progress max={1} value={row.share} aria-label="Progress" />}
        {row.state === "queued" && Date.parse(row.dueAt) > now.value && (
          <span class="dim">
            due <Ago at={row.dueAt} />
          </span>
        )}
        {row.detail && <span data-failed={row.failed}>{row.detail}</span>}
        <span class="mono dim">{row.args}</span>
      </td>
      <td role="gridcell" class="c-when">
        <When row={row} />
      </td>
      <td role="gridcell" class="c-took right extra">{row.claimedAt && row.state !== "queued" ? <Lasting from={row.claimedAt} to={row.finishedAt} /> : ""}</td>
      <td role="gridcell" class="c-tries right extra">{row.fence || ""}</td>
      <td role="gridcell" class="c-id mono dim" title={row.id}>{shortId(row.id)}</td>
    </tr>
  );
}

/** The key; that of a schedule of the same name as the task says nothing new. */
function Key({ row }: { row: Row }) {
  if (row.key === null) return <span class="dim">–</span>;
  return row.key === `schedule:${row.task}` ? <span class="dim">schedule</span> : <>{row.key}</>;
}

/** The instant by which the list is ordered: so the column reads from top to bottom. */
function When({ row }: { row: Row }) {
  return <Ago at={{ created: row.createdAt, due: row.dueAt, finished: row.finishedAt }[orderHere()]} />;
}
