import { signal } from "@preact/signals";
import { exact } from "../../api/exact";
import { pretty, rawField } from "../../api/raw";
import { fieldsOf, unnamed, type Field, type Schema } from "./fields";

const MASK = '"***"';

/** What somebody has entered for one parameter. */
export class Entry {
  readonly text = signal("");
  /** The argument is sent; else the task takes its default. */
  readonly given;
  readonly isNull = signal(false);
  readonly field: Field;
  /** The value that a run has, as JSON; null: it has none. */
  readonly before: string | null;
  readonly masked: boolean;

  constructor(field: Field, before: string | null) {
    this.field = field;
    this.before = before;
    this.masked = before === MASK;
    this.given = signal(before !== null ? !this.masked : field.required);
    if (before !== null && !this.masked) this.fill(before);
    else if (field.kind === "boolean") this.text.value = field.preset ?? "false";
    else if (field.kind === "choice") this.text.value = field.preset ?? field.choices[0] ?? "";
  }

  write(text: string): void {
    this.text.value = text;
    this.given.value = true;
    this.isNull.value = false;
  }

  /** Return the value as JSON; null if it is left out. Raises SyntaxError. */
  json(): string | null {
    if (!this.given.value) return null;
    if (this.isNull.value) return "null";
    const { kind, name } = this.field;
    const text = this.text.value;
    if (kind === "text") return JSON.stringify(text);
    try {
      const value = JSON.parse(text) as unknown;
      if ((kind === "number" || kind === "integer") && typeof value !== "number") throw new SyntaxError("no number");
      return text.trim();
    } catch {
      throw new SyntaxError(`${name}: ${text.trim() ? `${text.trim().slice(0, 40)} is not` : "write"} ${this.field.about}`);
    }
  }

  private fill(json: string): void {
    if (json === "null") {
      this.isNull.value = true;
      return;
    }
    if (this.field.kind !== "text") this.text.value = this.field.kind === "json" ? pretty(json) : json;
    else if (json.startsWith('"')) this.text.value = JSON.parse(json) as string;
    else this.text.value = json;
  }
}

/** Return an entry for each parameter, with the values of a run; then those that only the run has. */
export function entriesOf(schema: Schema, args: string | null): Entry[] {
  const fields = fieldsOf(schema);
  const had = args === null || args === "null" ? {} : (JSON.parse(args) as Record<string, unknown>);
  const others = Object.keys(had).filter((name) => !fields.some((field) => field.name === name));
  return [...fields, ...others.map(unnamed)].map((field) => new Entry(field, field.name in had ? rawField(args ?? "", field.name) : null));
}

/** Return all arguments that are given. Raises SyntaxError. */
export function argumentsOf(entries: readonly Entry[]): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  for (const entry of entries) {
    const json = entry.json();
    if (json !== null) found[entry.field.name] = exact(json);
  }
  return found;
}

/** Return only what differs from the arguments of the run, as a JSON merge patch. What is hidden stays. */
export function changesOf(entries: readonly Entry[]): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  for (const entry of entries) {
    const json = entry.json();
    if (json === null && entry.before !== null && !entry.masked) found[entry.field.name] = null;
    if (json !== null && (entry.before === null || pretty(json) !== pretty(entry.before))) found[entry.field.name] = exact(json);
  }
  return found;
}
