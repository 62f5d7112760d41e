import type { ScheduleRowFirings } from "../api/types";
import { hrefOf } from "../app/router";
import { wordOf } from "./state";

const TONES: Record<string, string> = { succeeded: "good", failed: "bad", running: "busy", queued: "busy", forgotten: "dim" };
const MARKS: Record<string, string> = { good: "▮", bad: "✕", busy: "◐", dim: "·", skip: "–" };
const SHOWN = 30;
/** A last outcome that needs a look is told by its word, too. */
const TOLD = ["skip", "bad"];

function toneOf(firing: ScheduleRowFirings): string {
  return TONES[firing.outcome] ?? "skip";
}

/** The last outcomes of a schedule, the oldest first. A tick that made no run has its reason on it. */
export function Strip({ firings }: { firings: readonly ScheduleRowFirings[] }) {
  const shown = [...firings.slice(0, SHOWN)].reverse();
  if (shown.length === 0) return <span class="dim">never fired</span>;
  const last = shown.findLast((firing) => toneOf(firing) !== "busy"); // what runs now says nothing of the tick before
  return (
    <span class="stripbox">
      <span class="strip">
        {shown.map((firing) => {
          const tone = toneOf(firing);
          const name = `${wordOf(firing.outcome)}, tick of ${firing.nominal.replace("T", " ").slice(0, 19)} UTC`;
          return firing.run && firing.state ? (
            <a key={firing.nominal} data-tone={tone} href={hrefOf(`/runs/${encodeURIComponent(firing.run)}`)} title={name} aria-label={name}>
              {MARKS[tone]}
            </a>
          ) : (
            <span key={firing.nominal} data-tone={tone} title={name} role="img" aria-label={name}>
              {MARKS[tone]}
            </span>
          );
        })}
      </span>
      {last && TOLD.includes(toneOf(last)) && <span class="skipped" data-tone={toneOf(last)}>{wordOf(last.outcome)}</span>}
    </span>
  );
}
