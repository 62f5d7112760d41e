import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ask } from "../api/client";
import { Problem } from "../api/problem";
import type { Filter, Operation, OperationBody, PostOperationsAnswer } from "../api/types";
import { count, counted, secondsOf } from "../app/format";
import { go } from "../app/router";
import { sayWrong } from "./act";
import { Dialog } from "./dialog";
import { Loading, ProblemView } from "./empty";
import { RunLink } from "./link";
import { StateMark } from "./state";
import { say } from "./toasts";
import { FormButtons, NoteField } from "./form";

export type Action = OperationBody["action"];

export interface Asked {
  action: Action;
  /** Either the ids of runs, or a filter that finds them. */
  ids?: string[];
  filter?: Filter;
}

const VERBS: Record<Action, string> = {
  retry: "Retry",
  cancel: "Cancel",
  pause: "Pause",
  resume: "Resume",
  reschedule: "Reschedule",
  delete: "Delete",
};
export const ACTIONS = Object.keys(VERBS) as Action[];

export function verbOf(action: Action): string {
  return VERBS[action];
}

/** Act on many runs: first a dry run says how many and which, then exactly that many are acted on. */
export function OperationDialog({ asked, onClose }: { asked: Asked; onClose: () => void }) {
  const dry = useSignal<PostOperationsAnswer | null>(null);
  const problem = useSignal<Problem | null>(null);
  const note = useSignal("");
  const delay = useSignal("10m");
  const busy = useSignal(false);
  const isLater = asked.action === "reschedule";

  function body(): OperationBody {
    const { action, ids, filter } = asked;
    const subject = ids ? { ids } : { filter: filter ?? {} };
    return { action, ...subject, ...(isLater ? { delay: secondsOf(delay.value) ?? 0 } : {}), note: note.value || null };
  }

  async function look(): Promise<void> {
    dry.value = null;
    problem.value = null;
    try {
      dry.value = (await ask("POST /operations", { body: { ...body(), dry_run: true } })) as PostOperationsAnswer;
    } catch (error) {
      problem.value = error instanceof Problem ? error : new Problem(500, { detail: String(error) });
    }
  }
  useEffect(() => void look(), []);

  async function confirm(event: Event): Promise<void> {
    event.preventDefault();
    const found = dry.value;
    if (!found) return;
    busy.value = true;
    try {
      const made = (await ask("POST /operations", {
        body: { ...body(), dry_run: false, expect: found.more ? 100_000 : found.matched },
      })) as Operation;
      onClose();
      sayStarted(made, asked.action, found);
    } catch (error) {
      problem.value = error instanceof Problem ? error : new Problem(500, { detail: String(error) });
    }
    busy.value = false;
  }

  const found = dry.value;
  const verb = VERBS[asked.action];
  const matched = found ? counted(found.matched, "run", found.more) : "";
  return (
    <Dialog title={`${verb} ${asked.ids ? "the selected runs" : "all runs that match"}`} onClose={onClose}>
      {problem.value && <ProblemView problem={problem.value} retry={() => void look()} />}
      {!found && !problem.value && <Loading />}
      {found && (
        <form class="form" onSubmit={confirm}>
          <p>
            <strong>{matched}</strong> {found.matched === 1 ? "is" : "are"} found. Nothing has happened yet.
          </p>
          {asked.action === "delete" && <p class="dim">Only runs that ended more than a minute ago are deleted. What is done stays done. This cannot be undone.</p>}
          <Breakdown found={found} />
          {isLater && (
            <div class="field">
              <label for="delay">Due again in (such as 90s, 10m, 2h)</label>
              <input id="delay" type="text" required pattern="\d+(\.\d+)?\s*(s|m|min|h|d|w)" value={delay.value} onInput={(event) => (delay.value = event.currentTarget.value)} />
            </div>
          )}
          <NoteField of={note} />
          <FormButtons verb={`${verb} ${matched}`} leave="Keep them as they are" danger={asked.action === "delete"} disabled={busy.value || found.matched === 0} onClose={onClose} />
        </form>
      )}
    </Dialog>
  );
}

function Breakdown({ found }: { found: PostOperationsAnswer }) {
  const tasks = Object.entries(found.by_task).sort((one, other) => other[1] - one[1]);
  return (
    <>
      <p class="row">
        {Object.entries(found.by_state).map(([state, value]) => (
          <span key={state} class="pill">
            <StateMark state={state} /> {count(value)}
          </span>
        ))}
        {tasks.slice(0, 6).map(([task, value]) => (
          <span key={task} class="pill">
            {task} {count(value)}
          </span>
        ))}
        {tasks.length > 6 && <span class="dim">and {counted(tasks.length - 6, "other task")}</span>}
      </p>
      <details>
        <summary>Some of them</summary>
        <ul>
          {found.sample.slice(0, 10).map((run) => (
            <li key={run.id}>
              <StateMark state={run.state} /> {run.task} <RunLink id={run.id} />
            </li>
          ))}
        </ul>
      </details>
    </>
  );
}

function sayStarted(made: Operation, action: Action, found: PostOperationsAnswer): void {
  const matched = counted(found.matched, "run", found.more);
  const undoable = action !== "retry" && action !== "delete";
  say(`${VERBS[action]}: ${matched} under way`, {
    act: undoable
      ? { name: "Undo", run: () => void undo(made.id) }
      : { name: "Show", run: () => go("/operations") },
  });
}

async function undo(id: string): Promise<void> {
  try {
    await ask("POST /operations/{id}/undo", { path: { id }, body: {} });
    say("Undo is under way", { act: { name: "Show", run: () => go("/operations") } });
  } catch (error) {
    sayWrong(error);
  }
}
