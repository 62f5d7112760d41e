import { addressOf, ask } from "../../api/client";
import { useResource } from "../../api/resource";
import type { AuditEntry } from "../../api/types";
import { count } from "../../app/format";
import { hrefOf, place, search } from "../../app/router";
import { act } from "../../parts/act";
import { Empty, Show } from "../../parts/empty";
import { Filters } from "../../parts/filters";
import { RunLink } from "../../parts/link";
import { Table } from "../../parts/table";
import { Time } from "../../parts/time";

const UNDOABLE = /^(runs|tasks|schedules)\.(pause|resume|cancel)$|^runs\.edit$/;
const FIELDS = [
  { name: "by", label: "By whom" },
  { name: "action", label: "Action", placeholder: "tasks.pause" },
  { name: "subject", label: "Run, task or schedule" },
] as const;

export function Audit() {
  const query = place.value.query;
  const filter = Object.fromEntries(FIELDS.map(({ name }) => [name, query.get(name)]));
  const rows = useResource(`audit ${search.value}`, (signal) => ask("GET /audit", { query: { ...filter, limit: 200 }, signal }), ["runs", "tasks", "schedules", "operations"]);
  return (
    <>
      <div class="row between">
        <Filters fields={FIELDS} />
        <a class="button small" href={addressOf("/audit/export", {}, filter)} download="audit.ndjson">
          Export all
        </a>
      </div>
      <Show of={rows}>
        {(found) =>
          found.items.length === 0 ? (
            <Empty title="Nobody has changed anything">
              <p>Every write of a person or a program with a name is kept here, also the refused ones.</p>
            </Empty>
          ) : (
            <Table
              label="Audit"
        cards
              rows={found.items}
              keyOf={(row) => row.id}
              columns={[
                { name: "at", cell: (row) => <Time at={row.at} /> },
                { name: "by", cell: (row) => <a href={hrefOf("/operations", { view: "audit", by: row.by })}>{row.by}</a> },
                { name: "from", extra: true, cell: (row) => <span class="dim">{[row.via, row.address].filter(Boolean).join(" ")}</span> },
                { name: "action", cell: (row) => <span class={row.result === "done" || row.result === "ok" ? undefined : "warning"}>{row.action}</span> },
                { name: "result", extra: true, cell: (row) => row.result },
                { name: "changed", right: true, extra: true, cell: (row) => (row.count ? `${count(row.changed)} of ${count(row.count)}` : <span class="dim">–</span>) },
                { name: "what", cell: (row) => <Subjects row={row} /> },
                { name: "why", wide: true, cell: (row) => (row.note ? `“${row.note}”` : "") },
                { name: "", cell: (row) => UNDOABLE.test(row.action) && row.changed > 0 && <Undo row={row} reload={rows.reload} /> },
              ]}
            />
          )
        }
      </Show>
    </>
  );
}

function Subjects({ row }: { row: AuditEntry }) {
  const [first] = row.subjects;
  if (first === undefined) return <span class="dim">–</span>;
  const more = row.count > 1 ? ` and ${count(row.count - 1)} more` : "";
  return (
    <>
      {row.action.startsWith("runs.") ? <RunLink id={first} /> : <span title={row.subjects.join("\n")}>{first}</span>}
      {more}
    </>
  );
}

function Undo({ row, reload }: { row: AuditEntry; reload: () => void }) {
  async function undo(): Promise<void> {
    await act("POST /audit/{id}/undo", { path: { id: row.id }, body: {} }, (reply) => (reply.data.done ? "Undone" : "There was nothing left to undo"));
    reload();
  }
  return (
    <button type="button" class="small" onClick={() => void undo()}>
      Undo
    </button>
  );
}
