/** The state of a run, or what became of a tick, as a word with a mark. The mark is no colour alone. */

const MARKS: Record<string, string> = {
  queued: "○",
  running: "◐",
  paused: "‖",
  succeeded: "●",
  failed: "✕",
  cancelled: "–",
  done: "●",
  waiting: "○",
  blocked: "■",
  skipped: "–",
  absent: "·",
};

export function markOf(state: string): string {
  return MARKS[state] ?? "!";
}

export const STATES = ["queued", "running", "paused", "succeeded", "failed", "cancelled"] as const;

export function StateMark({ state }: { state: string }) {
  return (
    <span class="state" data-state={state}>
      <span aria-hidden="true">{markOf(state)}</span> {wordOf(state)}
    </span>
  );
}

/** Return the name of a class without its modules: `shop.orders.ServerBusy` is `ServerBusy`. */
export function lastName(type: string): string {
  return type.split(".").at(-1) || type;
}

/** Return a word of the API as people read it: `already_running` is `already running`. */
export function wordOf(word: string): string {
  return word.replaceAll("_", " ");
}
