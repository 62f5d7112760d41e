import type { Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { counted } from "../../app/format";
import { ACTIONS, verbOf, type Action, type Asked } from "../../parts/operation";
import type { RunList } from "./list";
import type { Selection } from "./selection";

interface Props {
  list: RunList;
  selection: Selection;
  menu: Signal<boolean>;
  onAsk: (asked: Asked) => void;
}

/** What can be done with the selection, or with all that match. Nothing happens before a dry run has said how many. */
export function Actions({ list, selection, menu, onAsk }: Props) {
  const bar = useRef<HTMLDivElement>(null);
  const selected = selection.size.value;
  const open = menu.value || selected > 0;
  useEffect(() => {
    if (menu.value) bar.current?.querySelector("button")?.focus();
  }, [menu.value]);

  function ask(action: Action): void {
    menu.value = false;
    onAsk(selected ? { action, ids: [...selection.ids.peek()] } : { action, filter: list.filter });
  }

  if (!open) return null;
  return (
    <div class="actbar" role="toolbar" aria-label="Actions" ref={bar}>
      <strong>{selected ? `${counted(selected, "run")} selected` : "All that match"}</strong>
      {ACTIONS.map((action) => (
        <button key={action} type="button" class={action === "delete" ? "danger" : undefined} onClick={() => ask(action)}>
          {verbOf(action)}
        </button>
      ))}
      {selected > 0 && (
        <button type="button" class="quiet" onClick={() => selection.all(list.rows.peek())}>
          Select all shown
        </button>
      )}
      <button
        type="button"
        class="quiet"
        onClick={() => {
          selection.clear();
          menu.value = false;
        }}
      >
        {selected ? "Deselect" : "Close"}
      </button>
    </div>
  );
}
