import { useSignal } from "@preact/signals";
import { Dialog } from "./dialog";

interface Props {
  title: string;
  /** The word on the button. */
  verb: string;
  about: string;
  danger?: boolean;
  onClose: () => void;
  /** Does it; false leaves the dialog open. */
  onDone: (note: string) => Promise<boolean>;
}

/** Asks for a note before something is done: it goes to the audit. */
export function NoteDialog({ title, verb, about, danger, onClose, onDone }: Props) {
  const note = useSignal("");
  const busy = useSignal(false);

  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    busy.value = true;
    if (await onDone(note.value)) onClose();
    busy.value = false;
  }

  return (
    <Dialog title={title} onClose={onClose}>
      <form class="form" onSubmit={(event) => void submit(event)}>
        <p>{about}</p>
        <div class="field">
          <label for="why-note">Why? (goes to the audit)</label>
          <input id="why-note" type="text" maxLength={200} value={note.value} onInput={(event) => (note.value = event.currentTarget.value)} />
        </div>
        <footer>
          <button type="button" onClick={onClose}>
            Leave it
          </button>
          <button type="submit" class={danger ? "danger" : "primary"} disabled={busy.value}>
            {verb}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
