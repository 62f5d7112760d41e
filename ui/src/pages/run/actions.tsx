import { useSignal } from "@preact/signals";
import type { Run } from "../../api/types";
import { now } from "../../app/clock";
import { go } from "../../app/router";
import { may } from "../../app/session";
import { act } from "../../parts/act";
import { isOwn } from "../../parts/again";
import { NoteDialog } from "../../parts/note";
import { EditRunDialog } from "./edit";
import { RetryDialog } from "./retry";

interface Props {
  run: Run;
  args: string | null;
  etag: string | null;
  reload: () => void;
}

/** What stands out: a retry of what has failed, with edits if its arguments do not fit. Poison wants a look first. */
function offeredFor({ state, reason }: Run): "retry" | "edits" | null {
  if (state !== "failed" || reason === "poison") return null;
  return reason === "unbindable" ? "edits" : "retry";
}

/** What can be done with a run in its state, by who looks at it. */
export function RunActions({ run, args, etag, reload }: Props) {
  const editing = useSignal(false);
  const changing = useSignal(false);
  const deleting = useSignal(false);
  if (!may("operate")) return null;
  const path = { id: run.id };
  const isFinal = run.finished_at !== null;
  const offered = offeredFor(run);
  const own = isOwn(run.task);

  async function cancel(): Promise<void> {
    await act("POST /runs/{id}/cancel", { path, body: {} }, (reply) => (reply.status === 202 ? "Asked to stop" : "Cancelled"));
    reload();
  }
  async function pause(): Promise<void> {
    await act("POST /runs/{id}/pause", { path, body: {} }, (reply) => (reply.status === 202 ? "Asked to pause" : "Paused"));
    reload();
  }
  async function resume(): Promise<void> {
    await act("POST /runs/{id}/resume", { path, body: {} }, "Resumed");
    reload();
  }
  async function startNow(): Promise<void> {
    await act("PATCH /runs/{id}", { path, body: { due_at: new Date(now.peek()).toISOString() } }, "Due now");
    reload();
  }
  async function retry(): Promise<void> {
    const reply = await act("POST /runs/{id}/retry", { path, body: {} }, "Retried as a new run");
    if (reply) go(`/runs/${encodeURIComponent(reply.data.run)}`);
  }

  async function remove(note: string): Promise<boolean> {
    const reply = await act("DELETE /runs/{id}", { path, query: { note: note || null } }, "Deleted");
    if (reply) go(`/runs?task=${encodeURIComponent(run.task)}`);
    return reply !== null;
  }

  return (
    <>
      {isFinal && (
        <>
          {!own && (
            <>
              <button type="button" class={offered === "retry" ? "primary" : undefined} onClick={() => void retry()}>
                Retry
              </button>
              <button type="button" class={offered === "edits" ? "primary" : undefined} onClick={() => (editing.value = true)}>
                Retry with edits …
              </button>
            </>
          )}
          <button type="button" class="danger" onClick={() => (deleting.value = true)}>
            Delete …
          </button>
        </>
      )}
      {run.state === "queued" && (
        <>
          {!own && Date.parse(run.due_at) > Date.now() && (
            <button type="button" class="primary" onClick={() => void startNow()}>
              Make due now
            </button>
          )}
          {!own && (
            <button type="button" onClick={() => (changing.value = true)}>
              Change …
            </button>
          )}
          <button type="button" onClick={() => void pause()}>
            Pause
          </button>
        </>
      )}
      {run.state === "running" && !run.pause_requested && (
        <button type="button" onClick={() => void pause()}>
          Pause
        </button>
      )}
      {run.state === "paused" && (
        <button type="button" class="primary" onClick={() => void resume()}>
          Resume
        </button>
      )}
      {!isFinal && (
        <button type="button" class="danger" disabled={run.cancel_requested} onClick={() => void cancel()}>
          {run.cancel_requested ? "Asked to stop" : "Cancel"}
        </button>
      )}
      {changing.value && <EditRunDialog run={run} args={args} etag={etag} onClose={() => (changing.value = false)} onDone={reload} />}
      {deleting.value && (
        <NoteDialog
          title="Delete this run"
          verb="Delete it"
          danger
          about="Its arguments, result and attempts go. What is done stays done, and its key is remembered. This cannot be undone."
          onClose={() => (deleting.value = false)}
          onDone={remove}
        />
      )}
      {editing.value && <RetryDialog run={run} args={args} onClose={() => (editing.value = false)} />}
    </>
  );
}
