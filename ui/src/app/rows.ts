/** From row to row with the keyboard, on every page that has a list. The list of runs has keys of its own. */

const ROWS = "main [data-row]";

function rowHere(): Element | null {
  return document.activeElement?.closest("[data-row]") ?? null;
}

/** Put the focus on the first link or button of the next row. */
export function moveRow(step: 1 | -1): void {
  const rows = [...document.querySelectorAll(ROWS)].filter((row) => row.getClientRects().length > 0);
  const here = rowHere();
  const at = here ? rows.indexOf(here) + step : step > 0 ? 0 : rows.length - 1;
  const next = rows[Math.max(0, Math.min(rows.length - 1, at))];
  next?.querySelector<HTMLElement>("a[href], button")?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

/** Put the focus on the first action of the row. */
export function focusAction(): void {
  rowHere()?.querySelector<HTMLElement>("button:not(:disabled)")?.focus();
}

/** Ask why about the row. */
export function askRow(): void {
  rowHere()?.querySelector<HTMLElement>("a.why")?.click();
}
