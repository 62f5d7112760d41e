import { ask } from "../../api/client";
import { useResource } from "../../api/resource";
import type { Run } from "../../api/types";
import { counted, instant, span } from "../../app/format";
import { now } from "../../app/clock";
import { shownZone } from "../../app/preferences";

const COLUMNS = 48;
const MOST = 500;
const WIDTH = 12;
const HEIGHT = 13;

interface Call {
  at: number;
  seconds: number;
}

/** How long the last calls took, over time: the darker a cell, the more calls. Each row takes twice as long as the one below. */
export function Heat({ task }: { task: string }) {
  const runs = useResource(
    task,
    (signal) => ask("GET /runs", { query: { task: [task], state: ["succeeded", "failed"], by: "finished", order: "finished", limit: MOST }, signal }),
    ["stats"],
  );
  const calls = (runs.data.value?.items ?? []).flatMap(callsOf);
  if (calls.length < 2) return null;
  const from = Math.min(...calls.map((call) => call.at));
  const to = Math.max(from + 1, ...calls.map((call) => call.at));
  const rows = calls.map((call) => rowOf(call.seconds));
  const [low, high] = [Math.min(...rows), Math.max(...rows)];
  const counts = new Map<string, number>();
  calls.forEach((call, index) => {
    const cell = `${Math.min(COLUMNS - 1, Math.floor(((call.at - from) / (to - from)) * COLUMNS))} ${rows[index] ?? 0}`;
    counts.set(cell, (counts.get(cell) ?? 0) + 1);
  });
  const most = Math.max(...counts.values());
  const [least, longest] = [Math.min(...calls.map((call) => call.seconds)), Math.max(...calls.map((call) => call.seconds))];
  const height = (high - low + 1) * HEIGHT;
  const label = `${counted(calls.length, "call")}, from ${span(least)} to ${span(longest)}`;
  return (
    <section class="heat">
      <h2>How long the last {counted(calls.length, "call")} took</h2>
      <div class="heatbox">
        <ol class="heataxis" aria-hidden="true">
          {Array.from({ length: high - low + 1 }, (_, n) => (
            <li key={n}>{n % 2 === 0 || high - low < 4 ? span(2 ** (high - n)) : ""}</li>
          ))}
        </ol>
        <svg viewBox={`0 0 ${COLUMNS * WIDTH} ${height}`} preserveAspectRatio="none" height={height} role="img" aria-label={label}>
          {[...counts].map(([cell, value]) => {
            const [x = 0, y = 0] = cell.split(" ").map(Number);
            return (
              <rect key={cell} x={x * WIDTH} y={(high - y) * HEIGHT} width={WIDTH - 1} height={HEIGHT - 1} opacity={(0.25 + 0.75 * (value / most)).toFixed(2)}>
                <title>{`${counted(value, "call")} of about ${span(2 ** y)}`}</title>
              </rect>
            );
          })}
        </svg>
      </div>
      <p class="dim heattime">
        <span>{instant(from, shownZone.value, now.value)}</span>
        <span>{instant(to, shownZone.value, now.value)}</span>
      </p>
    </section>
  );
}

function callsOf(run: Run): Call[] {
  return run.attempts.map((attempt) => ({ at: Date.parse(attempt.ended_at), seconds: Math.max(0.001, (Date.parse(attempt.ended_at) - Date.parse(attempt.claimed_at)) / 1000) }));
}

function rowOf(seconds: number): number {
  return Math.ceil(Math.log2(seconds));
}
