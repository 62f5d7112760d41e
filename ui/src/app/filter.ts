/** The filter of runs: as text in the query bar, as the query of an address, and as the API takes it. */

import type { Filter, State } from "../api/types";
import { secondsOf } from "./format";

export const FIELDS = [
  "task", "state", "key", "queue", "schedule", "flow", "period", "origin", "worker", "error", "reason", "retry_of",
  "since", "until", "by", "order",
] as const;
export type Field = (typeof FIELDS)[number];

/** Fields that may be given more than once. */
const MANY: readonly string[] = ["task", "state", "queue"];

export const VALUES: Partial<Record<Field, readonly string[]>> = {
  state: ["queued", "running", "paused", "succeeded", "failed", "cancelled"],
  origin: ["submit", "touch", "schedule", "run_now", "retry", "flow", "plan"],
  since: ["15m", "1h", "2h", "1d", "7d"],
  until: ["15m", "1h", "1d"],
  by: ["created", "due", "finished"],
  order: ["created", "due", "finished"],
  reason: ["failed", "timed_out", "lost", "poison", "unbindable", "expired", "cancelled", "skipped", "superseded"],
};

function isField(name: string): name is Field {
  return (FIELDS as readonly string[]).includes(name);
}

/** Return the words of a text; quotes keep a value with spaces together. */
export function wordsOf(text: string): string[] {
  return text.match(/(?:[^\s"]|"[^"]*"?)+/g) ?? [];
}

/** Return the text of the query bar as the query of an address. Words without a field are searched for. */
export function queryOf(text: string): URLSearchParams {
  const query = new URLSearchParams();
  const free: string[] = [];
  for (const word of wordsOf(text)) {
    const colon = word.indexOf(":");
    const name = word.slice(0, colon);
    const value = word.slice(colon + 1).replaceAll('"', "");
    if (colon > 0 && isField(name)) {
      if (value === "") continue;
      if (MANY.includes(name)) value.split(",").forEach((each) => query.append(name, each));
      else query.set(name, value);
    } else free.push(word.replaceAll('"', ""));
  }
  if (free.length) query.set("q", free.join(" "));
  return query;
}

/** Return the query of an address as the text of the query bar. */
export function textOf(query: URLSearchParams): string {
  const words: string[] = [];
  for (const name of FIELDS) {
    const values = query.getAll(name);
    if (values.length) words.push(`${name}:${values.map(quoted).join(",")}`);
  }
  const free = query.get("q");
  return [...words, ...(free ? [free] : [])].join(" ");
}

function quoted(value: string): string {
  return /[\s"]/.test(value) ? `"${value}"` : value;
}

/** Return an instant of the query: `2h` is two hours before `now`. */
function instantOf(text: string, now: number): string {
  const seconds = secondsOf(text);
  if (seconds !== null) return new Date(now - seconds * 1000).toISOString();
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? text : new Date(ms).toISOString();
}

/** Return the filter as the API takes it. */
export function filterOf(query: URLSearchParams, now: number): Filter {
  const found: Record<string, string | string[]> = {};
  for (const name of [...FIELDS, "q"]) {
    const values = query.getAll(name).filter(Boolean);
    const value = values[0];
    if (value === undefined) continue;
    if (MANY.includes(name)) found[name] = values;
    else found[name] = name === "since" || name === "until" ? instantOf(value, now) : value;
  }
  return found as Filter;
}

/** Could a run with this task, state and key be one of those that the query finds? */
export function couldMatch(query: URLSearchParams, run: { task: string | null; state: string | null; key: string | null }): boolean {
  const takes = (name: string, value: string | null) => {
    const wanted = query.getAll(name);
    return wanted.length === 0 || (value !== null && wanted.includes(value));
  };
  return takes("task", run.task) && takes("state", run.state as State | null) && takes("key", run.key);
}
