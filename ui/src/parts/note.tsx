import { useSignal } from "@preact/signals";
import { Dialog } from "./dialog";
import { FormButtons, NoteField } from "./form";

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
        <NoteField of={note} />
        <FormButtons verb={verb} danger={danger} disabled={busy.value} onClose={onClose} />
      </form>
    </Dialog>
  );
}
