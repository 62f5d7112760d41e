import { useSignal } from "@preact/signals";
import { ask } from "../../api/client";
import { Problem } from "../../api/problem";
import type { Task } from "../../api/types";
import { secondsOf } from "../../app/format";
import { go } from "../../app/router";
import { Dialog } from "../../parts/dialog";
import { say } from "../../parts/toasts";

export function SubmitDialog({ task, onClose }: { task: Task; onClose: () => void }) {
  const args = useSignal("{}");
  const delay = useSignal("");
  const key = useSignal("");
  const wrong = useSignal("");

  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    try {
      const seconds = delay.value ? secondsOf(delay.value) : null;
      if (delay.value && seconds === null) throw new SyntaxError("when? Write a span such as 90s, 10m or 2h");
      const body = { task: task.task, args: JSON.parse(args.value) as Record<string, unknown>, delay: seconds, key: key.value || null };
      const made = await ask("POST /runs", { body });
      onClose();
      say(`Submitted ${task.task}`);
      go(`/runs/${encodeURIComponent(made.run)}`);
    } catch (error) {
      wrong.value = error instanceof Problem || error instanceof SyntaxError ? error.message : String(error);
    }
  }

  return (
    <Dialog title={`Submit ${task.task}`} onClose={onClose} wide>
      <form class="form" onSubmit={(event) => void submit(event)}>
        <div class="field">
          <label for="args">
            Arguments, as JSON{task.parameters && <>: <code>{task.parameters}</code></>}
          </label>
          <textarea id="args" rows={6} spellcheck={false} value={args.value} aria-invalid={wrong.value !== ""} aria-describedby="submit-wrong" onInput={(event) => (args.value = event.currentTarget.value)} />
        </div>
        <div class="field">
          <label for="delay">In (now, unless you say so)</label>
          <input id="delay" type="text" placeholder="10m" value={delay.value} onInput={(event) => (delay.value = event.currentTarget.value)} />
        </div>
        <div class="field">
          <label for="key">Key (as the task makes it, unless you say so)</label>
          <input id="key" type="text" value={key.value} onInput={(event) => (key.value = event.currentTarget.value)} />
        </div>
        <p id="submit-wrong" class="bad" role="alert">
          {wrong.value}
        </p>
        <footer>
          <button type="button" onClick={onClose}>
            Leave it
          </button>
          <button type="submit" class="primary">
            Submit
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
