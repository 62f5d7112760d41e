import type { Signal } from "@preact/signals";
import type { Binding } from "../../app/keys";
import { go } from "../../app/router";
import type { RunList } from "./list";
import type { Selection } from "./selection";

export function bindingsOf(list: RunList, selection: Selection, menu: Signal<boolean>): Binding[] {
  function move(step: number): void {
    const last = list.rows.peek().length - 1;
    selection.cursor.value = Math.max(0, Math.min(last, selection.cursor.peek() + step));
    reveal(selection.cursor.peek());
  }
  const row = () => list.rows.peek()[selection.cursor.peek()];
  const group = "Runs";
  return [
    { keys: "j", does: "Next run", group, run: () => move(1) },
    { keys: "k", does: "Previous run", group, run: () => move(-1) },
    {
      keys: "x",
      does: "Select or deselect the run",
      group,
      run: () => {
        const found = row();
        if (found) selection.toggle(found.id, selection.cursor.peek());
      },
    },
    { keys: "X", does: "Select up to this run", group, run: () => selection.extend(list.rows.peek(), Math.max(0, selection.cursor.peek())) },
    { keys: "o", does: "Open the run", group, run: () => open(row()?.id) },
    { keys: "y", does: "Why?", group, run: () => ask(row()?.id) },
    { keys: ".", does: "Actions", group, run: () => (menu.value = !menu.peek()) },
    { keys: "Escape", does: "Deselect all", group, run: () => selection.clear() },
  ];
}

function open(id: string | undefined): void {
  if (id) go(`/runs/${encodeURIComponent(id)}`);
}

function ask(id: string | undefined): void {
  if (id) go(`/why?subject=${encodeURIComponent(id)}`);
}

function reveal(index: number): void {
  requestAnimationFrame(() => {
    document.querySelector(`table.runs tr[aria-rowindex="${index + 2}"]`)?.scrollIntoView({ block: "nearest" });
  });
}
