/** The parameters of a task, as its JSON Schema says: one field of a form each. */

export interface Schema {
  type?: string | string[];
  enum?: unknown[];
  const?: unknown;
  anyOf?: Schema[];
  $ref?: string;
  $defs?: Record<string, Schema>;
  format?: string;
  title?: string;
  description?: string;
  default?: unknown;
  writeOnly?: boolean;
  minimum?: number;
  maximum?: number;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean | Schema;
}

export type Kind = "text" | "number" | "integer" | "boolean" | "choice" | "json";

export interface Field {
  name: string;
  kind: Kind;
  required: boolean;
  nullable: boolean;
  /** The values of a choice, as JSON. */
  choices: string[];
  /** What the task takes if nothing is given, as JSON. */
  preset: string | null;
  secret: boolean;
  /** What may be written here, in words. */
  about: string;
}

const PLAIN: Record<string, Kind> = { string: "text", number: "number", integer: "integer", boolean: "boolean" };
const WORDS: Record<Kind, string> = {
  text: "text",
  number: "a number",
  integer: "a whole number",
  boolean: "yes or no",
  choice: "one of these",
  json: "JSON",
};

/** Return the fields of a schema, in the order of its parameters. */
export function fieldsOf(schema: Schema): Field[] {
  const required = schema.required ?? [];
  return Object.entries(schema.properties ?? {}).map(([name, part]) => fieldOf(name, part, schema, required.includes(name)));
}

/** Return a field for a value that the schema does not name. */
export function unnamed(name: string): Field {
  return { name, kind: "json", required: false, nullable: false, choices: [], preset: null, secret: false, about: "not a parameter of the task" };
}

function fieldOf(name: string, part: Schema, whole: Schema, required: boolean): Field {
  const parts = partsOf(part, whole);
  const values = parts.filter((each) => each.type !== "null");
  const one: Schema = values.length === 1 ? (values[0] ?? {}) : {};
  const choices = (one.enum ?? (one.const === undefined ? [] : [one.const])).map((each) => JSON.stringify(each));
  const kind = choices.length ? "choice" : typeof one.type === "string" ? (PLAIN[one.type] ?? "json") : "json";
  return {
    name,
    kind,
    required,
    nullable: parts.some((each) => each.type === "null"),
    choices,
    preset: part.default === undefined ? null : JSON.stringify(part.default),
    secret: part.writeOnly === true,
    about: aboutOf(kind, one, values.length),
  };
}

/** Return what a value may be: the parts of a union, without references. */
function partsOf(part: Schema, whole: Schema, depth = 0): Schema[] {
  if (depth > 10) return [{}];
  if (part.$ref) return partsOf(whole.$defs?.[part.$ref.split("/").at(-1) ?? ""] ?? {}, whole, depth + 1);
  if (part.anyOf) return part.anyOf.flatMap((each) => partsOf(each, whole, depth + 1));
  if (Array.isArray(part.type)) return part.type.map((type) => ({ ...part, type }));
  return [part];
}

function aboutOf(kind: Kind, part: Schema, parts: number): string {
  if (kind === "json") {
    if (parts > 1) return "JSON, of one of several kinds";
    const type = typeof part.type === "string" ? { array: "a list", object: "an object" }[part.type] : undefined;
    return type ? `${type}, as JSON` : "any value, as JSON";
  }
  if (kind === "text" && part.format) return { "date-time": "an instant, such as 2026-11-18T09:00:00Z", date: "a day, such as 2026-11-18" }[part.format] ?? part.format;
  const least = part.minimum === undefined ? "" : ` from ${part.minimum}`;
  const most = part.maximum === undefined ? "" : ` up to ${part.maximum}`;
  return WORDS[kind] + least + most;
}
