import { useSignal } from "@preact/signals";
import { secondsOf } from "../../app/format";
import { may } from "../../app/session";
import { act } from "../../parts/act";
import { Dialog } from "../../parts/dialog";

interface Props {
  row: { id: string; state: string; kind: string };
  reload: () => void;
  small?: boolean;
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
      {row.state === "paused" ? (
        <button type="button" class={size} aria-label={`Resume ${row.id}`} onClick={() => void resume()}>
          Resume
        </button>
      ) : (
        <button type="button" class={size} aria-label={`Pause ${row.id}`} onClick={() => (pausing.value = true)}>
          Pause
        </button>
      )}
      {pausing.value && <PauseDialog id={row.id} onClose={() => (pausing.value = false)} reload={reload} />}
    </span>
  );
}

function PauseDialog({ id, onClose, reload }: { id: string; onClose: () => void; reload: () => void }) {
  const lasting = useSignal("");
  const note = useSignal("");

  async function pause(event: Event): Promise<void> {
    event.preventDefault();
    const seconds = secondsOf(lasting.value);
    const until = seconds === null ? null : new Date(Date.now() + seconds * 1000).toISOString();
    onClose();
    await act("POST /schedules/{id}/pause", { path: { id }, body: { until, note: note.value || null } }, `${id} paused`);
    reload();
  }

  return (
    <Dialog title={`Pause ${id}`} onClose={onClose}>
      <form class="form" onSubmit={pause}>
        <div class="field">
          <label for="until">For how long? (such as 30m, 2h, 1d; empty: until somebody resumes it)</label>
          <input id="until" type="text" pattern="\d+(\.\d+)?\s*(s|m|min|h|d|w)" value={lasting.value} onInput={(event) => (lasting.value = event.currentTarget.value)} />
        </div>
        <div class="field">
          <label for="pause-note">Why? (everybody sees it beside the pause)</label>
          <input id="pause-note" type="text" maxLength={200} value={note.value} onInput={(event) => (note.value = event.currentTarget.value)} />
        </div>
        <footer>
          <button type="button" onClick={onClose}>
            Keep it active
          </button>
          <button type="submit" class="primary">
            Pause
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
