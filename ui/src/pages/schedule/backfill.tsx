import { useSignal } from "@preact/signals";
import { ask } from "../../api/client";
import type { BackfillTick } from "../../api/types";
import { counted } from "../../app/format";
import { Dialog } from "../../parts/dialog";
import { FormButtons, Wrong } from "../../parts/form";
import { Time } from "../../parts/time";
import { say } from "../../parts/toasts";

/** Return an instant as a field for local times takes it. */
function local(at: number): string {
  const date = new Date(at - new Date(at).getTimezoneOffset() * 60_000);
  return date.toISOString().slice(0, 16);
}

/** Make runs of past ticks: first the ticks are listed, then the runs are made. */
export function BackfillDialog({ id, onClose, onDone }: { id: string; onClose: () => void; onDone: () => void }) {
  const from = useSignal(local(Date.now() - 86_400_000));
  const to = useSignal(local(Date.now()));
  const ticks = useSignal<BackfillTick[] | null>(null);
  const wrong = useSignal("");

  async function fill(dry: boolean): Promise<void> {
    wrong.value = "";
    const end = Math.min(Date.parse(to.value), Date.now() - 1_000);
    const body = { from: new Date(from.value).toISOString(), to: new Date(end).toISOString(), dry_run: dry };
    try {
      const found = await ask("POST /schedules/{id}/backfill", { path: { id }, body });
      ticks.value = found.items;
      if (dry) return;
      onClose();
      onDone();
      say(`${counted(found.items.length, "run")} of ${id} made`);
    } catch (error) {
      wrong.value = error instanceof Error ? error.message : String(error);
    }
  }

  const found = ticks.value;
  return (
    <Dialog title={`Backfill ${id}`} onClose={onClose}>
      <form class="form" onSubmit={(event) => { event.preventDefault(); void fill(found === null); }}>
        <div class="row">
          <div class="field">
            <label for="from">From (my time)</label>
            <input id="from" type="datetime-local" required value={from.value} onInput={(event) => { from.value = event.currentTarget.value; ticks.value = null; }} />
          </div>
          <div class="field">
            <label for="to">To (my time)</label>
            <input id="to" type="datetime-local" required value={to.value} onInput={(event) => { to.value = event.currentTarget.value; ticks.value = null; }} />
          </div>
        </div>
        {found && (
          <>
            <p>
              <strong>{counted(found.length, "tick")}</strong> would get a run. Nothing has happened yet.
            </p>
            <ul class="ticks">
              {found.slice(0, 30).map((tick) => (
                <li key={tick.nominal}>
                  <Time at={tick.nominal} />
                </li>
              ))}
              {found.length > 30 && <li class="dim">and {found.length - 30} more</li>}
            </ul>
          </>
        )}
        <Wrong of={wrong} />
        <FormButtons
          verb={found ? `Make ${counted(found.length, "run")}` : "Show the ticks"}
          leave="Close"
          disabled={found !== null && found.length === 0}
          onClose={onClose}
        />
      </form>
    </Dialog>
  );
}
