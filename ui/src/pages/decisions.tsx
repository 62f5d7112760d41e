import { ask } from "../api/client";
import { useResource } from "../api/resource";
import type { DecisionCount } from "../api/types";
import { now } from "../app/clock";
import { count } from "../app/format";
import { readNames, taskNames } from "../app/names";
import { hrefOf, place, search } from "../app/router";
import { Empty, Show } from "../parts/empty";
import { Exports } from "../parts/exports";
import { Filters } from "../parts/filters";
import { RunLink, TaskLink, WhyLink } from "../parts/link";
import { Head } from "../parts/page";
import { wordOf } from "../parts/state";
import { Table } from "../parts/table";
import { Ago } from "../parts/time";

const HOUR = 3_600_000;
const REASONS = ["already_running", "already_queued", "already_done", "breaker", "cooldown", "disabled", "missed", "paused", "queue_full", "late", "replaced"];

/** Everything that did not run, folded by task, key and reason. */
export default function DecisionsPage() {
  const query = place.value.query;
  const filter = Object.fromEntries(["task", "key", "reason", "by"].map((name) => [name, query.get(name)]));
  const rows = useResource(
    `decisions ${search.value}`,
    (signal) => {
      void readNames();
      return ask("GET /decisions", { query: { ...filter, limit: 500 }, signal });
    },
    ["decisions"],
  );
  const items = rows.data.value?.items ?? [];
  return (
    <>
      <Head title="Decisions" about="Everything that did not run, and why: refused submits, skipped ticks, pauses.">
        {items.length > 0 && <Exports name="decisions" rows={items} />}
      </Head>
      <Filters fields={[{ name: "task", label: "Task", values: taskNames.value }, { name: "reason", label: "Reason", values: REASONS }, { name: "key", label: "Key" }, { name: "by", label: "By whom" }]} />
      <Show of={rows}>
        {(found) =>
          found.items.length === 0 ? (
            <Empty title={search.value ? "No decision matches" : "Nothing was refused, skipped or changed yet"}>
              <p>A submit that makes no run, a tick that is skipped and a pause leave a line here, with their reason.</p>
            </Empty>
          ) : (
            <Rows rows={found.items} more={found.more} />
          )
        }
      </Show>
    </>
  );
}

function Rows({ rows, more }: { rows: readonly DecisionCount[]; more: boolean }) {
  const most = Math.max(...rows.map(pace), 0.0001);
  return (
    <>
      <Table
        label="Decisions"
        cards
        rows={rows}
        keyOf={(row) => `${row.task} ${row.key} ${row.reason}`}
        columns={[
          { name: "reason", cell: (row) => <a href={hrefOf("/decisions", { reason: row.reason })}>{wordOf(row.reason)}</a> },
          { name: "task", cell: (row) => <TaskLink name={row.task} /> },
          { name: "key", extra: true, cell: (row) => (row.key ? <a href={hrefOf("/keys", { key: row.key })}>{row.key}</a> : <span class="dim">–</span>) },
          { name: "times", right: true, cell: (row) => count(row.count) },
          { name: "an hour", extra: true, cell: (row) => <Trend row={row} most={most} /> },
          { name: "last", cell: (row) => <Ago at={row.last_at} /> },
          { name: "run", extra: true, cell: (row) => (row.run ? <RunLink id={row.run} /> : <span class="dim">–</span>) },
          { name: "by, and why", wide: true, cell: (row) => [row.by, row.note && `“${row.note}”`].filter(Boolean).join(": ") },
          { name: "", cell: (row) => <WhyLink subject={row.task} {...(row.key ? { key_: row.key } : {})} /> },
        ]}
      />
      {more && <p class="dim part">There are more: filter by task, key or reason.</p>}
    </>
  );
}

/** Return how often it was decided so in an hour, since the first time. */
function pace(row: DecisionCount): number {
  return row.count / Math.max(1, (now.peek() - Date.parse(row.first_at)) / HOUR);
}

/** How often, and whether it has come lately or is over. */
function Trend({ row, most }: { row: DecisionCount; most: number }) {
  const value = pace(row);
  const fresh = now.value - Date.parse(row.last_at) < HOUR;
  const shown = value < 1 ? value.toFixed(1) : count(Math.round(value));
  return (
    <span class="row nowrap trend" title={fresh ? "It came in the last hour" : "Not in the last hour"}>
      <span class="paced" aria-hidden="true">
        <span style={{ width: `${Math.max(2, (100 * value) / most)}%` }} />
      </span>
      <span class={fresh ? undefined : "dim"}>{shown}</span>
    </span>
  );
}
