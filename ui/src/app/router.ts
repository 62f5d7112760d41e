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
  if (replace) window.history.replaceState(null, "", address);
  else window.history.pushState(null, "", address);
  place.value = here();
  if (!replace) window.scrollTo(0, 0);
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
  window.addEventListener("popstate", () => (place.value = here()));
  document.addEventListener("click", onClick);
}
