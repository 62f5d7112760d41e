import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { ask, send } from "../../api/client";
import { Problem } from "../../api/problem";
import type { Run, RunPatch } from "../../api/types";
import { now } from "../../app/clock";
import { secondsOf } from "../../app/format";
import { rawField } from "../../api/raw";
import { changesOf, type Entry } from "../../parts/arguments/entries";
import { ArgumentFields } from "../../parts/arguments/form";
import { useEntries } from "../../parts/arguments/read";
import { Conflict } from "../../parts/conflict";
import { Dialog } from "../../parts/dialog";
import { Show } from "../../parts/empty";
import { say } from "../../parts/toasts";
import { FormButtons, NoteField, Wrong } from "../../parts/form";

interface Props {
  run: Run;
  args: string | null;
  etag: string | null;
  onClose: () => void;
  onDone: () => void;
}

/** Change a run that waits: when it is due, its priority, its arguments. Both versions are shown if somebody was faster. */
export function EditRunDialog(props: Props) {
  const { run, args, etag } = useRef(props).current; // as they were when the dialog opened: the page behind it goes on
  const { onClose, onDone } = props;
  const entries = useEntries(run.task, args);
  const later = useSignal("");
  const priority = useSignal(String(run.priority));
  const note = useSignal("");
  const wrong = useSignal("");
  const theirs = useSignal<{ run: Run; args: string | null; etag: string | null } | null>(null);

  function patchOf(found: Entry[]): RunPatch {
    const seconds = secondsOf(later.value);
    const changes = changesOf(found);
    return {
      ...(seconds === null ? {} : { due_at: new Date(now.peek() + seconds * 1000).toISOString() }),
      ...(Number(priority.value) === run.priority ? {} : { priority: Number(priority.value) }),
      ...(Object.keys(changes).length ? { args: changes } : {}),
      note: note.value || null,
    };
  }

  async function save(found: Entry[]): Promise<void> {
    const version = theirs.value?.etag ?? etag;
    try {
      await ask("PATCH /runs/{id}", { path: { id: run.id }, body: patchOf(found), ...(version ? { headers: { "If-Match": version } } : {}) });
      say("The run is changed");
      onClose();
      onDone();
    } catch (error) {
      if (error instanceof Problem && error.status === 412) {
        const reply = await send("GET /runs/{id}", { path: { id: run.id } });
        theirs.value = { run: reply.data, args: rawField(reply.text, "args"), etag: reply.etag };
      } else wrong.value = error instanceof Error ? error.message : String(error);
    }
  }

  return (
    <Dialog title={`Change this run of ${run.task}`} onClose={onClose} wide>
      <Show of={entries}>
        {(found) => (
          <form
            class="form"
            onSubmit={(event) => {
              event.preventDefault();
              void save(found);
            }}
          >
            {theirs.value && <Conflict rows={rowsOf(run, patchOf(found), args, theirs.value)} />}
            <div class="field">
              <label for="edit-due">Due in (such as 90s, 10m, 2h; empty: as it is)</label>
              <input id="edit-due" type="text" pattern="\d+(\.\d+)?\s*(s|m|min|h|d|w)" value={later.value} onInput={(event) => (later.value = event.currentTarget.value)} />
            </div>
            <div class="field">
              <label for="edit-priority">Priority (higher goes first)</label>
              <input id="edit-priority" type="number" required value={priority.value} onInput={(event) => (priority.value = event.currentTarget.value)} />
            </div>
            <ArgumentFields entries={found} />
            <NoteField of={note} />
            <Wrong of={wrong} />
            <FormButtons verb={theirs.value ? "Save mine over theirs" : "Save"} onClose={onClose} />
          </form>
        )}
      </Show>
    </Dialog>
  );
}

function rowsOf(run: Run, mine: RunPatch, args: string | null, theirs: { run: Run; args: string | null }): [string, string, string][] {
  return [
    ["state", run.state, theirs.run.state],
    ["due", mine.due_at ?? run.due_at, theirs.run.due_at],
    ["priority", String(mine.priority ?? run.priority), String(theirs.run.priority)],
    ["arguments", mine.args ? JSON.stringify(mine.args, null, 1) : (args ?? ""), theirs.args ?? ""],
  ];
}
