import { ask } from "../../api/client";
import { useResource } from "../../api/resource";
import { now } from "../../app/clock";
import { counted, span as spanText } from "../../app/format";
import { hrefOf, place, setQuery } from "../../app/router";
import { Empty, Show } from "../../parts/empty";
import { Head } from "../../parts/page";
import { wordOf } from "../../parts/state";
import { Chart } from "./chart";
import { Demand, type Hour } from "./demand";
import { toneOf } from "./draw";
import { LEAST, moved, OFFERED, zoomed, type Span } from "./scale";
import "../../styles/timeline.css";

const BY = ["task", "schedule", "worker"] as const;
/** The service merges calls to as many columns. */
const COLUMNS = 1600;
/** Without a span of its own, the page follows the time by steps of so many milliseconds. */
const STEP = 10_000;

export default function TimelinePage() {
  const query = place.value.query;
  const by = BY.find((each) => each === query.get("by")) ?? "task";
  const length = Number(query.get("last")) || 3_600_000;
  const own = spanOf(query.get("from"), query.get("to"));
  const step = Math.floor(now.value / STEP) * STEP;
  const span = own ?? { from: step - length, to: step + length };
  const key = `${by} ${span.from} ${span.to}`;
  const rows = useResource(
    own ? key : `${by} ${length}`,
    (signal) => ask("GET /timeline", { query: { by, from: iso(span.from), to: iso(span.to), px: COLUMNS }, signal }),
    own && own.to < now.value ? [] : ["runs"],
  );
  const minutes = Math.min(2_880, Math.max(1, Math.ceil((now.peek() - span.from) / 60_000)));
  const days = Math.min(31, Math.max(1, Math.ceil((span.to - now.peek()) / 86_400_000)));
  const demand = useResource(
    `${by} ${length} ${own ? key : ""}`,
    async (signal) => {
      const [stats, preview, workers] = await Promise.all([
        ask("GET /stats", { query: { minutes }, signal }),
        span.to > now.peek() ? ask("GET /preview", { query: { days, tz: "UTC" }, signal }) : null,
        ask("GET /workers", { signal }),
      ]);
      const live = workers.items.filter((worker) => worker.standing !== "stopped" && worker.standing !== "silent");
      return { stats: stats.items, hours: (preview?.hours ?? []) as Hour[], seats: live.reduce((sum, worker) => sum + worker.seats, 0) };
    },
    ["stats"],
  );
  const folds = query.get("folds") !== "no";
  const show = (next: Span) => setQuery({ from: iso(next.from), to: iso(next.to), last: null }, false);
  return (
    <>
      <Head title="Time line" about="What ran when, and what will fire. Drag to zoom, click to see the runs.">
        <div class="row" role="group" aria-label="Span">
          {OFFERED.map(([name, size]) => (
            <button key={name} type="button" aria-pressed={!own && size === length} onClick={() => setQuery({ from: null, to: null, last: String(size) })}>
              ± {name}
            </button>
          ))}
        </div>
        <div class="row" role="group" aria-label="Move">
          <button type="button" aria-label="Earlier" onClick={() => show(moved(span, -0.5))}>←</button>
          <button type="button" aria-label="Later" onClick={() => show(moved(span, 0.5))}>→</button>
          <button type="button" aria-label="Zoom in" disabled={span.to - span.from <= LEAST} onClick={() => show(zoomed(span, 0.5))}>+</button>
          <button type="button" aria-label="Zoom out" onClick={() => show(zoomed(span, 2))}>−</button>
        </div>
        <a class="button" href={hrefOf("/runs", { since: iso(span.from), ...(span.to < now.value ? { until: iso(span.to) } : {}) })}>
          Runs of this time
        </a>
        <label class="by">
          <input type="checkbox" checked={folds} onChange={(event) => setQuery({ folds: event.currentTarget.checked ? null : "no" })} /> fold idle times
        </label>
        <label class="by">
          rows by
          <select aria-label="Rows" value={by} onChange={(event) => setQuery({ by: event.currentTarget.value })}>
            {BY.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
      </Head>
      <Show of={rows}>
        {(found) =>
          found.items.length === 0 ? (
            <Empty title={`Nothing ran in this time, ${spanText((span.to - span.from) / 1000)}, and nothing will fire`}>
              <p>Zoom out, or choose another time.</p>
            </Empty>
          ) : (
            <>
              <Legend outcomes={found.items.flatMap((row) => row.segments.map((segment) => segment.outcome))} />
              {found.minutes_before && <p class="banner">There are more runs than one page reads: what is older is shown by the minute.</p>}
              <Chart
                by={by}
                rows={found.items}
                made={COLUMNS}
                span={{ from: Date.parse(found.from ?? iso(span.from)), to: Date.parse(found.to ?? iso(span.to)) }}
                folds={folds}
                above={(scale, width) => demand.data.value && <Demand {...demand.data.value} span={{ from: Date.parse(found.from ?? iso(span.from)), to: Date.parse(found.to ?? iso(span.to)) }} scale={scale} made={COLUMNS} width={width} now={now.value} />}
                onZoom={show}
              />
              {found.next && <p class="dim">These are the first {counted(found.items.length, "row")}.</p>}
            </>
          )
        }
      </Show>
    </>
  );
}

function Legend({ outcomes }: { outcomes: string[] }) {
  const byTone = new Map<string, string[]>();
  for (const outcome of [...new Set(outcomes)].sort()) {
    const tone = toneOf(outcome).slice(2);
    byTone.set(tone, [...(byTone.get(tone) ?? []), outcome]);
  }
  return (
    <ul class="legend" aria-label="Colours">
      {[...byTone].map(([tone, found]) => (
        <li key={tone}>
          <span class="swatch" data-tone={tone} data-hollow={tone === "accent"} aria-hidden="true" />
          {found.map(wordOf).join(", ")}
        </li>
      ))}
    </ul>
  );
}

function spanOf(from: string | null, to: string | null): Span | null {
  const span = { from: Date.parse(from ?? ""), to: Date.parse(to ?? "") };
  return span.to > span.from ? span : null;
}

function iso(at: number): string {
  return new Date(at).toISOString();
}
