import { useSignal } from "@preact/signals";
import { ask } from "../../api/client";
import type { PostTasksNameTryAnswer, Task } from "../../api/types";
import { secondsOf } from "../../app/format";
import { go } from "../../app/router";
import { argumentsOf, type Entry } from "../../parts/arguments/entries";
import { ArgumentFields } from "../../parts/arguments/form";
import { useEntries } from "../../parts/arguments/read";
import { Dialog } from "../../parts/dialog";
import { Show } from "../../parts/empty";
import { RunLink } from "../../parts/link";
import { wordOf } from "../../parts/state";
import { say } from "../../parts/toasts";
import { FormButtons, Wrong } from "../../parts/form";
import "../../styles/why.css";

/** Submit a run; or try it: what would a submit answer now, guard by guard? */
export function SubmitDialog({ task, onClose }: { task: Task; onClose: () => void }) {
  const entries = useEntries(task.task, null);
  const delay = useSignal("");
  const key = useSignal("");
  const wrong = useSignal("");
  const trial = useSignal<PostTasksNameTryAnswer | null>(null);

  function bodyOf(found: Entry[]) {
    const seconds = delay.value ? secondsOf(delay.value) : null;
    if (delay.value && seconds === null) throw new SyntaxError("in: write a span such as 90s, 10m or 2h");
    return { args: argumentsOf(found), delay: seconds, key: key.value || null };
  }

  async function guarded(does: () => Promise<void>): Promise<void> {
    wrong.value = "";
    trial.value = null;
    try {
      await does();
    } catch (error) {
      wrong.value = error instanceof Error ? error.message : String(error);
    }
  }

  const submit = (found: Entry[]) =>
    guarded(async () => {
      const made = await ask("POST /runs", { body: { task: task.task, ...bodyOf(found) } });
      onClose();
      say(made.created ? `Submitted ${task.task}` : `${task.task}: ${wordOf(made.reason)}`);
      go(`/runs/${encodeURIComponent(made.run)}`);
    });
  const attempt = (found: Entry[]) =>
    guarded(async () => {
      trial.value = await ask("POST /tasks/{name}/try", { path: { name: task.task }, body: bodyOf(found) });
    });

  return (
    <Dialog title={`Submit ${task.task}`} onClose={onClose} wide>
      <Show of={entries}>
        {(found) => (
          <form
            class="form"
            onSubmit={(event) => {
              event.preventDefault();
              void submit(found);
            }}
          >
            <ArgumentFields entries={found} />
            <div class="columns">
              <div class="field">
                <label for="delay">In (now, unless you say so)</label>
                <input id="delay" type="text" placeholder="10m" value={delay.value} onInput={(event) => (delay.value = event.currentTarget.value)} />
              </div>
              <div class="field">
                <label for="key">Key (as the task makes it, unless you say so)</label>
                <input id="key" type="text" value={key.value} onInput={(event) => (key.value = event.currentTarget.value)} />
              </div>
            </div>
            <Wrong of={wrong} />
            {trial.value && <Trial of={trial.value} />}
            <FormButtons verb="Submit" onClose={onClose}>
              <button type="button" onClick={() => void attempt(found)}>
                Try: what would happen?
              </button>
            </FormButtons>
          </form>
        )}
      </Show>
    </Dialog>
  );
}

function Trial({ of }: { of: PostTasksNameTryAnswer }) {
  return (
    <section class="trial" aria-label="What would happen" aria-live="polite">
      <p data-accepted={of.accepted}>
        <strong>{of.accepted ? "A submit would make a run." : `A submit would make no run: ${wordOf(of.reason)}.`}</strong> Nothing has happened.{" "}
        {of.run && !of.accepted && (
          <>
            In the way: <RunLink id={of.run} />
          </>
        )}
      </p>
      <dl class="facts">
        {of.guards.map((guard) => (
          <div key={guard.guard}>
            <dt>{wordOf(guard.guard)}</dt>
            <dd>
              {wordOf(guard.says)} <span class="dim">{guard.rule}</span>
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
