import type { Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { Badge } from "../app/badge";

/** Asks why something is done. */
export function NoteField({ of }: { of: Signal<string> }) {
  return (
    <div class="field">
      <label for="note">Why? (goes to the audit)</label>
      <input id="note" type="text" maxLength={200} value={of.value} onInput={(event) => (of.value = event.currentTarget.value)} />
    </div>
  );
}

/** Says what is wrong with a form. */
export function Wrong({ of }: { of: Signal<string> }) {
  return (
    <p class="bad" role="alert">
      {of.value}
    </p>
  );
}

interface Props {
  /** The words on the button that does it. */
  verb: ComponentChildren;
  leave?: string;
  danger?: boolean;
  disabled?: boolean;
  onClose: () => void;
  /** Other buttons. */
  children?: ComponentChildren;
}

/** The buttons at the end of a form. */
export function FormButtons({ verb, leave = "Leave it", danger = false, disabled = false, onClose, children }: Props) {
  return (
    <footer>
      <Badge />
      <button type="button" onClick={onClose}>
        {leave}
      </button>
      {children}
      <button type="submit" class={danger ? "danger" : "primary"} disabled={disabled}>
        {verb}
      </button>
    </footer>
  );
}
