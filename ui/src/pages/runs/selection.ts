import { computed, signal } from "@preact/signals";

/** Which rows are selected, and on which row the keyboard is. */
export class Selection {
  readonly ids = signal<ReadonlySet<string>>(new Set());
  readonly cursor = signal(-1);
  readonly size = computed(() => this.ids.value.size);
  private anchor = -1;

  toggle(id: string, index: number): void {
    const ids = new Set(this.ids.peek());
    if (!ids.delete(id)) ids.add(id);
    this.ids.value = ids;
    this.anchor = index;
    this.cursor.value = index;
  }

  /** Select all rows from the last one that was toggled to this one. */
  extend(rows: readonly { id: string }[], index: number): void {
    const from = this.anchor < 0 ? index : this.anchor;
    const [first, last] = from < index ? [from, index] : [index, from];
    this.ids.value = new Set([...this.ids.peek(), ...rows.slice(first, last + 1).map((row) => row.id)]);
    this.cursor.value = index;
  }

  all(rows: readonly { id: string }[]): void {
    this.ids.value = new Set(rows.map((row) => row.id));
  }

  clear(): void {
    this.ids.value = new Set();
  }
}
