import { ask } from "../../api/client";
import { useResource } from "../../api/resource";
import type { Stat, TaskDetail } from "../../api/types";
import { count, span } from "../../app/format";
import { Spark } from "../../parts/spark";

const MINUTES = 60;

/** What became of the calls of the last hour, and how long they waited and took. */
export function Past({ task, hour }: { task: string; hour: TaskDetail["last_hour"] }) {
  const stats = useResource(task, (signal) => ask("GET /stats", { query: { minutes: MINUTES, task }, signal }), ["stats"]);
  const found = stats.data.value?.items ?? [];
  const sum = (of: (stat: Stat) => number) => (stats.data.value ? count(found.reduce((total, stat) => total + of(stat), 0)) : "…");
  return (
    <section class="past" aria-labelledby="past">
      <h2 id="past">The last hour</h2>
      <Line name="succeeded" total={sum((stat) => stat.succeeded)} values={minutes(found, (stat) => stat.succeeded)} />
      <Line name="failed" total={sum((stat) => stat.failed)} values={minutes(found, (stat) => stat.failed)} tone="bad" />
      <Line name="waited (p95)" total={seconds(hour.wait_p95)} values={minutes(found, (stat) => stat.wait_p95 ?? 0)} />
      <Line name="took (p95)" total={seconds(hour.run_p95)} values={minutes(found, (stat) => stat.run_p95 ?? 0)} />
    </section>
  );
}

function Line({ name, total, values, tone }: { name: string; total: string; values: number[]; tone?: "bad" }) {
  return (
    <div>
      <span class="dim">{name}</span>
      <strong>{total}</strong>
      <Spark values={values} label={`${name} in the last hour, minute by minute`} width={140} kind="bars" {...(tone ? { tone } : {})} />
    </div>
  );
}

function seconds(value: number | null | undefined): string {
  return value === null || value === undefined ? "–" : span(value);
}

/** One number for each of the last minutes; minutes in which nothing ended are 0. */
function minutes(stats: readonly Stat[], of: (stat: Stat) => number): number[] {
  const values = new Array<number>(MINUTES).fill(0);
  const end = Math.floor(Date.now() / 60_000);
  for (const stat of stats) {
    const index = MINUTES - 1 - (end - Math.floor(Date.parse(stat.minute) / 60_000));
    if (index >= 0 && index < MINUTES) values[index] = of(stat);
  }
  return values;
}
