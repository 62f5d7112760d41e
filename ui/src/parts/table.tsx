import type { ComponentChildren } from "preact";
import { counted } from "../app/format";
import { useStill } from "./still";

export interface Column<T> {
  name: string;
  cell: (row: T) => ComponentChildren;
  /** Numbers stand at the right, one below the other. */
  right?: boolean;
  /** Hidden on a narrow screen. */
  extra?: boolean;
  /** Takes the room that is left, and is cut where it ends. */
  wide?: boolean;
}

/** Columns whose links and buttons say what they are: their names are for screen readers. */
const UNSEEN: Record<string, string> = { "": "links", do: "actions" };

interface Props<T> {
  label: string;
  rows: readonly T[];
  columns: readonly Column<T>[];
  keyOf: (row: T) => string;
  /** On a phone, each row becomes a card with the names of its columns. */
  cards?: boolean;
}

/** A list. Its rows do not move while the pointer or the focus is among them. `j` and `k` go from row to row. */
export function Table<T>({ label, rows, columns, keyOf, cards }: Props<T>) {
  const still = useStill(rows, keyOf);
  return (
    <div class="tablebox" role="region" aria-label={label} tabIndex={0} {...still.hold}>
      {still.fresh > 0 && (
        <button type="button" class="pill new waiting" onClick={still.show}>
          {counted(still.fresh, "new row")}: show
        </button>
      )}
      <table role="table" class={cards ? "cards" : undefined}>
        <thead role="rowgroup">
          <tr role="row">
            {columns.map((column) => (
              <th key={column.name} role="columnheader" scope="col" class={classOf(column)}>
                {UNSEEN[column.name] ? <span class="unseen">{UNSEEN[column.name]}</span> : column.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {still.rows.map((row) => (
            <tr key={keyOf(row)} role="row" data-row data-gone={still.isGone(row)}>
              {columns.map((column) => (
                <td key={column.name} role="cell" class={classOf(column)} data-name={column.name}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function classOf<T>(column: Column<T>): string {
  return [column.right && "right", column.extra && "extra", column.wide && "wide"].filter(Boolean).join(" ");
}
