import { ask } from "../../api/client";
import { useResource } from "../../api/resource";
import type { Operation } from "../../api/types";
import { count } from "../../app/format";
import { hrefOf } from "../../app/router";
import { may } from "../../app/session";
import { now } from "../../app/clock";
import { act } from "../../parts/act";
import { Empty, Show } from "../../parts/empty";
import { StateMark } from "../../parts/state";
import { Table } from "../../parts/table";
import { Ago } from "../../parts/time";

const FINAL = ["succeeded", "failed", "cancelled"];
const PARTS = ["task", "state", "key", "queue", "schedule", "flow", "error", "reason", "q"];

export function Operations() {
  const rows = useResource("operations", (signal) => ask("GET /operations", { query: { limit: 100 }, signal }), ["operations", "runs"]);
  return (
    <Show of={rows}>
      {(found) =>
        found.items.length === 0 ? (
          <Empty title="No operation yet">
            <p>
              On the page <a href={hrefOf("/runs")}>Runs</a>, filter, then act on all that match: a dry run says how many, and the operation appears here.
            </p>
          </Empty>
        ) : (
          <Table
            label="Operations"
        cards
            rows={found.items}
            keyOf={(row) => row.id}
            columns={[
              { name: "action", cell: (row) => <strong>{nameOf(row, found.items)}</strong> },
              { name: "state", cell: (row) => <StateMark state={row.state} /> },
              { name: "progress", cell: (row) => <Progress row={row} /> },
              { name: "done", right: true, cell: (row) => count(row.done) },
              { name: "skipped", right: true, extra: true, cell: (row) => count(row.skipped) },
              { name: "begun", cell: (row) => <Ago at={row.created_at} /> },
              { name: "by", extra: true, cell: (row) => row.by ?? "–" },
              { name: "runs that match, and why", wide: true, cell: (row) => <About row={row} /> },
              { name: "do", cell: (row) => <Buttons row={row} reload={rows.reload} /> },
            ]}
          />
        )
      }
    </Show>
  );
}

/** Return what an operation does; of an undo, what it undoes. */
function nameOf(row: Operation, all: readonly Operation[]): string {
  if (row.of === null) return row.action;
  const undone = all.find((each) => each.id === row.of);
  return undone ? `undo of ${undone.action}` : "undo";
}

function Progress({ row }: { row: Operation }) {
  if (FINAL.includes(row.state)) return <span class="dim">–</span>;
  const share = (row.progress as { share?: number } | null)?.share;
  return <progress max={1} {...(share === undefined ? {} : { value: share })} aria-label={`Progress of ${row.action}`} />;
}

/** The filter in words, then the note or the error. */
function About({ row }: { row: Operation }) {
  const filter = (row.filter ?? {}) as Record<string, unknown>;
  const words = PARTS.filter((name) => hasValue(filter[name])).map((name) => `${name}:${String(filter[name])}`);
  return (
    <>
      {words.length > 0 && <code>{words.join(" ")} </code>}
      {row.error ? <span class="bad">{row.error}</span> : <span class="dim">{row.note ?? ""}</span>}
    </>
  );
}

function hasValue(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : value !== null && value !== undefined && value !== "";
}

function Buttons({ row, reload }: { row: Operation; reload: () => void }) {
  if (!may("operate")) return null;
  const path = { id: row.id };
  const undoable = row.undo_until !== null && Date.parse(row.undo_until) > now.value;
  async function stop(): Promise<void> {
    await act("POST /operations/{id}/stop", { path, body: {} }, "Asked to stop");
    reload();
  }
  async function undo(): Promise<void> {
    await act("POST /operations/{id}/undo", { path, body: {} }, "Undo is under way");
    reload();
  }
  return (
    <span class="row nowrap">
      {!FINAL.includes(row.state) && (
        <button type="button" class="small" onClick={() => void stop()}>
          Stop
        </button>
      )}
      {FINAL.includes(row.state) && undoable && row.done > 0 && (
        <button type="button" class="small" onClick={() => void undo()}>
          Undo
        </button>
      )}
    </span>
  );
}
