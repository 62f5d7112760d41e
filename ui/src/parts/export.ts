/** Exports of a list, made here from what the page has read. */

/** Return a cell of CSV. A cell that a spreadsheet would take for a formula begins with an apostrophe. */
function cell(value: unknown): string {
  const text = value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function csvOf(rows: readonly object[]): string {
  const names = Object.keys(rows[0] ?? {});
  const lines = rows.map((row) => names.map((name) => cell((row as Record<string, unknown>)[name])).join(","));
  return [names.join(","), ...lines].join("\r\n");
}

/** Let the browser keep a text as a file. */
export function keepFile(name: string, text: string): void {
  const link = document.createElement("a");
  const type = name.endsWith(".csv") ? "text/csv" : "application/json";
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
