import { signal } from "@preact/signals";

interface Toast {
  id: number;
  text: string;
  kind: "done" | "wrong";
  act?: { name: string; run: () => void };
}

const STAYS = 8_000;
const toasts = signal<Toast[]>([]);

/** What was said while nobody saw the tab: its title says it. */
export const unread = signal("");
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState !== "hidden") unread.value = "";
});
let last = 0;

export function dismiss(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}

/** Say what became of an action. What went wrong, or came while the tab was hidden, stays until somebody has read it. */
export function say(text: string, options: { wrong?: boolean; act?: Toast["act"] } = {}): void {
  last += 1;
  const toast: Toast = { id: last, text, kind: options.wrong ? "wrong" : "done", act: options.act };
  toasts.value = [...toasts.value.slice(-3), toast];
  if (document.visibilityState === "hidden") unread.value = text;
  else if (!options.wrong) setTimeout(() => dismiss(toast.id), options.act ? STAYS * 2 : STAYS);
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map((toast) => (
        <div key={toast.id} class="toast" data-kind={toast.kind}>
          <span>{toast.text}</span>
          {toast.act && (
            <button
              type="button"
              onClick={() => {
                toast.act?.run();
                dismiss(toast.id);
              }}
            >
              {toast.act.name}
            </button>
          )}
          <button type="button" class="quiet" aria-label="Dismiss" onClick={() => dismiss(toast.id)}>
            ✕
          </button>
        </div>
      ))}
    </div>
  );
}
