/** Keys: what they do, wherever they are pressed. The help page reads this list. */

export interface Binding {
  /** One key, such as `?`, or two in a row, such as `g r`; `ctrl+k` is the same as ⌘K. */
  keys: string;
  does: string;
  run: () => void;
  /** Bindings of the page that is shown come before those of the frame. */
  group: string;
}

const bindings = new Map<string, Binding[]>();
const PAIR = 1_200;
let first: { key: string; at: number } | null = null;

/** Bind keys until the function that is returned is called. */
export function bind(added: readonly Binding[]): () => void {
  for (const each of added) bindings.set(each.keys, [...(bindings.get(each.keys) ?? []), each]);
  return () => {
    for (const each of added) {
      const left = (bindings.get(each.keys) ?? []).filter((other) => other !== each);
      if (left.length) bindings.set(each.keys, left);
      else bindings.delete(each.keys);
    }
  };
}

export function allBindings(): Binding[] {
  return [...bindings.values()].flatMap((each) => each.slice(-1));
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement) {
    return true;
  }
  return target instanceof HTMLInputElement && !["checkbox", "radio", "button", "submit"].includes(target.type);
}

function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing || event.altKey) return;
  const control = event.ctrlKey || event.metaKey;
  if (control ? event.key.toLowerCase() !== "k" : isTyping(event.target)) return;
  if (!control && document.querySelector("dialog[open]")) return;
  const key = control ? "ctrl+k" : event.key;
  const pair = first && Date.now() - first.at < PAIR ? `${first.key} ${key}` : null;
  first = null;
  const found = (pair && bindings.get(pair)?.at(-1)) || bindings.get(key)?.at(-1);
  if (found) {
    event.preventDefault();
    found.run();
  } else if ([...bindings.keys()].some((keys) => keys.startsWith(`${key} `))) {
    first = { key, at: Date.now() };
  }
}

export function startKeys(): void {
  document.addEventListener("keydown", onKey);
}
