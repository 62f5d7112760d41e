import type { ComponentChildren } from "preact";

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

interface Props<T> {
  label: string;
  rows: readonly T[];
  columns: readonly Column<T>[];
  keyOf: (row: T) => string;
}

export function Table<T>({ label, rows, columns, keyOf }: Props<T>) {
  return (
    <div class="tablebox" role="region" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.name} scope="col" class={classOf(column)}>
                {column.name || <span class="unseen">links</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map((column) => (
                <td key={column.name} class={classOf(column)}>
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
