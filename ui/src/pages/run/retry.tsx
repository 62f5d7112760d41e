import { useSignal } from "@preact/signals";
import { ask } from "../../api/client";
import { Problem } from "../../api/problem";
import { pretty } from "../../api/raw";
import type { Run } from "../../api/types";
import { go } from "../../app/router";
import { Dialog } from "../../parts/dialog";
import { say } from "../../parts/toasts";

type Fields = Record<string, unknown>;
const MASK = "***";

/**
 * Return what changes from `before` to `after`, as a JSON merge patch. Fields that were not touched are left out, so that
 * masked values stay what they are, and numbers too long for JavaScript are not sent back rounded.
 */
export function patchOf(before: Fields, after: Fields): Fields {
  const patch: Fields = {};
  for (const name of Object.keys(before)) if (!(name in after)) patch[name] = null;
  for (const [name, value] of Object.entries(after)) {
    const known = before[name];
    if (JSON.stringify(known) === JSON.stringify(value) || value === MASK) continue;
    patch[name] = isObject(known) && isObject(value) ? patchOf(known, value) : value;
  }
  return patch;
}

function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function RetryDialog({ run, args, onClose }: { run: Run; args: string | null; onClose: () => void }) {
  const shown = pretty(args ?? "{}");
  const text = useSignal(shown);
  const note = useSignal("");
  const wrong = useSignal("");

  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    try {
      const after: unknown = JSON.parse(text.value);
      if (!isObject(after)) throw new SyntaxError("the arguments are an object: a value for each parameter");
      const patch = patchOf(JSON.parse(shown) as Fields, after);
      const body = { args: patch, note: note.value || null };
      const made = await ask("POST /runs/{id}/retry", { path: { id: run.id }, body });
      onClose();
      say("Retried with other arguments");
      go(`/runs/${encodeURIComponent(made.run)}`);
    } catch (error) {
      wrong.value = error instanceof Problem || error instanceof SyntaxError ? error.message : String(error);
    }
  }

  return (
    <Dialog title={`Retry ${run.task} with other arguments`} onClose={onClose} wide>
      <form class="form" onSubmit={submit}>
        <div class="field">
          <label for="edited">Arguments, as JSON. What you leave as it is stays: also values that are hidden as {MASK}</label>
          <textarea
            id="edited"
            rows={Math.min(18, shown.split("\n").length + 2)}
            spellcheck={false}
            value={text.value}
            aria-invalid={wrong.value !== ""}
            aria-describedby="edit-wrong"
            onInput={(event) => (text.value = event.currentTarget.value)}
          />
        </div>
        <div class="field">
          <label for="retry-note">Why? (goes to the audit)</label>
          <input id="retry-note" type="text" maxLength={200} value={note.value} onInput={(event) => (note.value = event.currentTarget.value)} />
        </div>
        <p id="edit-wrong" class="bad" role="alert">
          {wrong.value}
        </p>
        <footer>
          <button type="button" onClick={onClose}>
            Keep it
          </button>
          <button type="submit" class="primary">
            Retry with these arguments
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
