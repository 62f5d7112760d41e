import { csvOf, keepFile } from "./export";

/** A list as a file. */
export function Exports({ name, rows }: { name: string; rows: readonly object[] }) {
  if (rows.length === 0) return null;
  return (
    <>
      <button type="button" class="small" onClick={() => keepFile(`${name}.csv`, csvOf(rows))}>
        CSV
      </button>
      <button type="button" class="small" onClick={() => keepFile(`${name}.json`, JSON.stringify(rows, null, 1))}>
        JSON
      </button>
    </>
  );
}
