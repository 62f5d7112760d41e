import { useSignal } from "@preact/signals";
import { now } from "../app/clock";
import { secondsOf } from "../app/format";
import { Dialog } from "./dialog";
import { FormButtons } from "./form";

interface Props {
  name: string;
  about?: string;
  onClose: () => void;
  /** `until` is an instant; null: until somebody resumes it. */
  onPause: (until: string | null, note: string) => Promise<void>;
}

/** Asks for how long something is paused, and why. */
export function PauseDialog({ name, about, onClose, onPause }: Props) {
  const lasting = useSignal("");
  const note = useSignal("");

  async function pause(event: Event): Promise<void> {
    event.preventDefault();
    const seconds = secondsOf(lasting.value);
    onClose();
    await onPause(seconds === null ? null : new Date(now.peek() + seconds * 1000).toISOString(), note.value);
  }

  return (
    <Dialog title={`Pause ${name}`} onClose={onClose}>
      <form class="form" onSubmit={(event) => void pause(event)}>
        {about && <p>{about}</p>}
        <div class="field">
          <label for="until">For how long? (such as 30m, 2h, 1d; empty: until somebody resumes it)</label>
          <input id="until" type="text" pattern="\d+(\.\d+)?\s*(s|m|min|h|d|w)" value={lasting.value} onInput={(event) => (lasting.value = event.currentTarget.value)} />
        </div>
        <div class="field">
          <label for="pause-note">Why? (everybody sees it beside the pause)</label>
          <input id="pause-note" type="text" maxLength={200} value={note.value} onInput={(event) => (note.value = event.currentTarget.value)} />
        </div>
        <FormButtons verb="Pause" leave="Keep it active" onClose={onClose} />
      </form>
    </Dialog>
  );
}
