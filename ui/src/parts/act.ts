import { ask, send, type Answer, type Call, type Reply, type Route } from "../api/client";
import { Problem } from "../api/problem";
import { say } from "./toasts";

const UNDOABLE = /\/(pause|resume|cancel)$|^PATCH \/runs/;

/** Do something, and say what became of it. What can be undone gets a button for that. Null: it did not happen. */
export async function act<R extends Route>(
  route: R,
  call: Call<R>,
  done: string | ((reply: Reply<Answer<R>>) => string),
): Promise<Reply<Answer<R>> | null> {
  try {
    const reply = await send(route, call);
    const audit = reply.audit;
    const text = typeof done === "string" ? done : done(reply);
    say(text, audit && UNDOABLE.test(route) ? { act: { name: "Undo", run: () => void undo(audit) } } : {});
    return reply;
  } catch (error) {
    sayWrong(error);
    return null;
  }
}

async function undo(audit: string): Promise<void> {
  try {
    const { done, skipped } = await ask("POST /audit/{id}/undo", { path: { id: audit }, body: {} });
    say(done || !skipped ? "Undone" : "There was nothing left to undo");
  } catch (error) {
    sayWrong(error);
  }
}

export function sayWrong(error: unknown): void {
  say(error instanceof Problem ? error.message : String(error), { wrong: true });
}
