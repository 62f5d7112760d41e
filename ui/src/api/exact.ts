/** JSON whose numbers are not rounded: they stay the text that somebody wrote, where the browser can do that. */

interface Exact {
  rawJSON?: (text: string) => unknown;
  parse: (text: string, reviver: (name: string, value: unknown, context?: { source?: string }) => unknown) => unknown;
}
const json = JSON as unknown as Exact;

/** Return the value of a JSON text. Sent back, its numbers are those of the text. Raises SyntaxError. */
export function exact(text: string): unknown {
  return json.parse(text, (_, value, context) =>
    typeof value === "number" && context?.source && json.rawJSON ? json.rawJSON(context.source) : value,
  );
}
