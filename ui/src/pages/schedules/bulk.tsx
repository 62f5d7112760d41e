import { useSignal } from "@preact/signals";
import { ask } from "../../api/client";
import type { ScheduleRow } from "../../api/types";
import { counted } from "../../app/format";
import { may } from "../../app/session";
import { sayWrong } from "../../parts/act";
import { PauseDialog } from "../../parts/pause";
import { say } from "../../parts/toasts";
import { isPaused } from "../schedule/actions";

type Verb = "pause" | "resume";

/** Pause all schedules that are shown, for a maintenance; or resume those that are paused. */
export function Bulk({ rows, reload }: { rows: readonly ScheduleRow[]; reload: () => void }) {
  const pausing = useSignal(false);
  if (!may("operate")) return null;
  const paused = rows.filter(isPaused);
  const active = rows.filter((row) => !paused.includes(row) && row.state === "active");

  /** Do it one by one; return the ids that changed. What fails is said, and the rest goes on. */
  async function each(verb: Verb, ids: readonly string[], body: { until?: string | null; note?: string | null }): Promise<string[]> {
    const changed: string[] = [];
    for (const id of ids) {
      try {
        const answer = await ask(`POST /schedules/{id}/${verb}`, { path: { id }, body });
        if (answer.changed) changed.push(id);
      } catch (error) {
        sayWrong(error);
      }
    }
    reload();
    return changed;
  }

  async function pause(until: string | null, note: string): Promise<void> {
    const body = { until, note: note || null };
    const changed = await each("pause", active.map((row) => row.id), body);
    say(`Paused ${counted(changed.length, "schedule")}`, { act: { name: "Undo", run: () => void resume(changed) } });
  }

  async function resume(ids: readonly string[]): Promise<void> {
    const changed = await each("resume", ids, {});
    say(`Resumed ${counted(changed.length, "schedule")}`);
  }

  return (
    <p class="row part">
      {active.length > 1 && (
        <button type="button" class="small" onClick={() => (pausing.value = true)}>
          Pause all {active.length} shown …
        </button>
      )}
      {paused.length > 1 && (
        <button type="button" class="small" onClick={() => void resume(paused.map((row) => row.id))}>
          Resume all {paused.length} paused
        </button>
      )}
      {pausing.value && <PauseDialog name={counted(active.length, "schedule")} about={active.map((row) => row.id).join(", ")} onClose={() => (pausing.value = false)} onPause={pause} />}
    </p>
  );
}
