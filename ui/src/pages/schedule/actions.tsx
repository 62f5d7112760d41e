import { useSignal } from "@preact/signals";
import { may } from "../../app/session";
import { act } from "../../parts/act";
import { PauseDialog } from "../../parts/pause";

interface Props {
  row: { id: string; state: string; kind: string; paused_until: string | null };
  reload: () => void;
  small?: boolean;
}

/** Does somebody keep it from firing: until it is resumed, or for a while? */
export function isPaused(row: { state: string; paused_until: string | null }): boolean {
  return row.state === "paused" || row.paused_until !== null;
}

/** Run now, pause until, resume. */
export function ScheduleActions({ row, reload, small }: Props) {
  const pausing = useSignal(false);
  if (!may("operate")) return null;
  const path = { id: row.id };
  const size = small ? "small" : undefined;

  async function runNow(): Promise<void> {
    await act("POST /schedules/{id}/run-now", { path, body: {} }, `${row.id} runs now`);
    reload();
  }
  async function pause(until: string | null, note: string): Promise<void> {
    const body = { until, note: note || null };
    await act("POST /schedules/{id}/pause", { path, body }, `${row.id} paused`);
    reload();
  }
  async function resume(): Promise<void> {
    await act("POST /schedules/{id}/resume", { path, body: {} }, `${row.id} resumed`);
    reload();
  }

  return (
    <span class="row">
      {row.kind === "schedule" && (
        <button type="button" class={size} aria-label={`Run now ${row.id}`} onClick={() => void runNow()}>
          Run now
        </button>
      )}
      {isPaused(row) ? (
        <button type="button" class={size} aria-label={`Resume ${row.id}`} onClick={() => void resume()}>
          Resume
        </button>
      ) : (
        <button type="button" class={size} aria-label={`Pause ${row.id}`} onClick={() => (pausing.value = true)}>
          Pause
        </button>
      )}
      {pausing.value && <PauseDialog name={row.id} onClose={() => (pausing.value = false)} onPause={pause} />}
    </span>
  );
}
