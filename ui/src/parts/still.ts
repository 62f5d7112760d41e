import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";

export interface Still<T> {
  rows: readonly T[];
  /** Rows that have come and wait until they are asked for. */
  fresh: number;
  isGone: (row: T) => boolean;
  show: () => void;
  /** What the element around the rows listens to. */
  hold: {
    onPointerEnter: (event: PointerEvent) => void;
    onPointerLeave: () => void;
    onFocusIn: () => void;
    onFocusOut: (event: FocusEvent) => void;
  };
}

/**
 * The live rule: while the pointer or the focus is in a list, its rows keep their places. They change where they are;
 * those that went stay, dimmed; those that came wait.
 */
export function useStill<T>(rows: readonly T[], keyOf: (row: T) => string): Still<T> {
  const pointed = useSignal(false);
  const focused = useSignal(false);
  const order = useRef<string[]>([]);
  const known = useRef(new Map<string, T>());
  const asked = useRef(false);
  const shows = useSignal(0);
  const current = new Map(rows.map((row) => [keyOf(row), row]));
  void shows.value;
  if ((!pointed.value && !focused.value) || asked.current) {
    asked.current = false;
    order.current = [...current.keys()];
    known.current = current;
  } else {
    for (const key of order.current) known.current.set(key, current.get(key) ?? (known.current.get(key) as T));
  }
  const places = new Set(order.current);
  return {
    rows: order.current.map((key) => known.current.get(key) as T),
    fresh: [...current.keys()].filter((key) => !places.has(key)).length,
    isGone: (row) => !current.has(keyOf(row)),
    show: () => {
      asked.current = true;
      focused.value = false; // the button that was pressed may be gone now
      shows.value += 1;
    },
    hold: {
      onPointerEnter: (event) => (pointed.value = event.pointerType === "mouse"),
      onPointerLeave: () => (pointed.value = false),
      onFocusIn: () => (focused.value = true),
      onFocusOut: (event) => {
        const next = event.relatedTarget;
        focused.value = next instanceof Node && event.currentTarget instanceof Node && event.currentTarget.contains(next);
      },
    },
  };
}
