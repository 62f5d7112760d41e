import { computed, signal } from "@preact/signals";
import { BASE } from "./base";

export interface Place {
  /** The path below the root of the service; it begins with a slash. */
  path: string;
  query: URLSearchParams;
}

export type Params = Record<string, string>;

function here(): Place {
  const { pathname, search } = window.location;
  const path = pathname.startsWith(BASE) ? pathname.slice(BASE.length - 1) : "/";
  return { path: path.replace(/(.)\/$/, "$1"), query: new URLSearchParams(search) };
}

export const place = signal<Place>(here());
export const search = computed(() => place.value.query.toString());

/** Return the address of a page, for a link. */
export function hrefOf(path: string, query?: URLSearchParams | Record<string, string>): string {
  const text = query ? new URLSearchParams(query).toString() : "";
  return `${BASE}${path.replace(/^\//, "")}${text ? `?${text}` : ""}`;
}

/** Go to a page; `path` may have a query. `replace` leaves no entry in the history. */
export function go(path: string, replace = false): void {
  const address = `${BASE}${path.replace(/^\//, "")}`;
  stop?.abort();
  if (replace) window.history.replaceState(window.history.state, "", address);
  else {
    noteScroll();
    window.history.pushState(null, "", address);
  }
  place.value = here();
  if (!replace) window.scrollTo(0, 0);
}

/** Milliseconds for which a page may grow until it is as long as it was, and frames for which it then has to stay so. */
const GROWS = 10_000;
const STAYS = 10;
let stop: AbortController | null = null;

/** Note how far the reader has scrolled, in the entry of the history that is shown. */
function noteScroll(): void {
  window.history.replaceState({ y: window.scrollY }, "");
}

/** Go back to where the reader was: a page that is read anew is not long enough at first, and a list reads on at its end. */
function restoreScroll(y: number): void {
  stop?.abort();
  const mine = new AbortController();
  stop = mine;
  const options = { signal: mine.signal, passive: true };
  for (const moves of ["wheel", "touchstart", "pointerdown", "keydown"]) window.addEventListener(moves, () => mine.abort(), options);
  const end = Date.now() + GROWS;
  let stayed = 0;
  function step(): void {
    if (mine.signal.aborted) return;
    window.scrollTo(0, y);
    stayed = Math.abs(window.scrollY - y) > 1 ? 0 : stayed + 1; // at first, the page before may still be there
    if (y > 0 && stayed < STAYS && Date.now() < end) requestAnimationFrame(step);
    else mine.abort();
  }
  step();
}

/** Change one part of the query of this page. */
export function setQuery(changes: Record<string, string | null>, replace = true): void {
  const query = new URLSearchParams(place.peek().query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  go(`${place.peek().path}${text ? `?${text}` : ""}`, replace);
}

/** Return the values of a pattern such as `/runs/:id`; null if the path is another one. */
export function match(pattern: string, path: string): Params | null {
  const wanted = pattern.split("/");
  const given = path.split("/");
  if (wanted.length !== given.length) return null;
  const found: Params = {};
  for (const [index, part] of wanted.entries()) {
    const value = given[index] ?? "";
    if (part.startsWith(":")) found[part.slice(1)] = decoded(value);
    else if (part !== value) return null;
  }
  return found;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Links to pages change the page without a load; everything else is left to the browser. */
function onClick(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
  const link = (event.target as Element).closest?.("a");
  if (!link || link.target || link.hasAttribute("download") || link.origin !== window.location.origin) return;
  if (!link.pathname.startsWith(BASE) || link.pathname.startsWith(`${BASE}api/`)) return;
  event.preventDefault();
  go(`${link.pathname.slice(BASE.length - 1)}${link.search}`);
}

export function startRouter(): void {
  window.history.scrollRestoration = "manual";
  window.addEventListener("scrollend", noteScroll);
  window.addEventListener("popstate", (event: PopStateEvent) => {
    place.value = here();
    restoreScroll((event.state as { y?: number } | null)?.y ?? 0);
  });
  const { y } = (window.history.state ?? {}) as { y?: number }; // after a reload
  if (y) restoreScroll(y);
  document.addEventListener("click", onClick);
}
