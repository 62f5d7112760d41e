import { useSignal } from "@preact/signals";
import { ask } from "../../api/client";
import type { Run } from "../../api/types";
import { go } from "../../app/router";
import { changesOf, type Entry } from "../../parts/arguments/entries";
import { ArgumentFields } from "../../parts/arguments/form";
import { useEntries } from "../../parts/arguments/read";
import { Dialog } from "../../parts/dialog";
import { Show } from "../../parts/empty";
import { say } from "../../parts/toasts";
import { FormButtons, NoteField, Wrong } from "../../parts/form";

/** Retry a run with other arguments. Only what was changed is sent: hidden values and long numbers stay as they are. */
export function RetryDialog({ run, args, onClose }: { run: Run; args: string | null; onClose: () => void }) {
  const entries = useEntries(run.task, args);
  const note = useSignal("");
  const wrong = useSignal("");

  async function submit(found: Entry[]): Promise<void> {
    try {
      const body = { args: changesOf(found), note: note.value || null };
      const made = await ask("POST /runs/{id}/retry", { path: { id: run.id }, body });
      onClose();
      say("Retried with other arguments");
      go(`/runs/${encodeURIComponent(made.run)}`);
    } catch (error) {
      wrong.value = error instanceof Error ? error.message : String(error);
    }
  }

  return (
    <Dialog title={`Retry ${run.task} with other arguments`} onClose={onClose} wide>
      <Show of={entries}>
        {(found) => (
          <form
            class="form"
            onSubmit={(event) => {
              event.preventDefault();
              void submit(found);
            }}
          >
            <p class="dim">This makes a new run. What you do not change stays as it was.</p>
            <ArgumentFields entries={found} />
            <NoteField of={note} />
            <Wrong of={wrong} />
            <FormButtons verb="Retry with these arguments" onClose={onClose} />
          </form>
        )}
      </Show>
    </Dialog>
  );
}
