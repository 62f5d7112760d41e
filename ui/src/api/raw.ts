/** JSON as it was sent: numbers that JavaScript would round stay as they are. */

function skipText(text: string, at: number): number {
  let end = at + 1;
  while (end < text.length && text[end] !== '"') end += text[end] === "\\" ? 2 : 1;
  return end + 1;
}

/** Return the place behind the value that begins at `at`. */
function skipValue(text: string, at: number): number {
  if (text[at] === '"') return skipText(text, at);
  let depth = 0;
  let end = at;
  while (end < text.length) {
    const sign = text[end] as string;
    if (sign === '"') {
      end = skipText(text, end);
      continue;
    }
    if (depth === 0 && (sign === "," || sign === "}" || sign === "]")) return end;
    if (sign === "{" || sign === "[") depth += 1;
    if (sign === "}" || sign === "]") depth -= 1;
    end += 1;
    if (depth === 0 && (sign === "}" || sign === "]")) return end;
  }
  return end;
}

/** Return the text of one field of an object, without reading the numbers in it; null if there is none. */
export function rawField(text: string, name: string): string | null {
  let at = text.indexOf("{") + 1;
  while (at > 0 && at < text.length) {
    const start = text.indexOf('"', at);
    if (start < 0) return null;
    const end = skipText(text, start);
    const value = text.indexOf(":", end) + 1;
    const first = value + (/^\s*/.exec(text.slice(value, value + 40))?.[0].length ?? 0);
    const behind = skipValue(text, first);
    if (text.slice(start, end) === JSON.stringify(name)) return text.slice(first, behind);
    at = behind;
  }
  return null;
}

/** Return JSON with line breaks and indents; its values are copied, never read. */
export function pretty(text: string): string {
  let out = "";
  let depth = 0;
  const line = () => `\n${"  ".repeat(depth)}`;
  for (let at = 0; at < text.length; ) {
    const sign = text[at] as string;
    if (sign === '"') {
      const end = skipText(text, at);
      out += text.slice(at, end);
      at = end;
      continue;
    }
    const empty = /^[{[]\s*[}\]]/.exec(text.slice(at, at + 20));
    if (empty) {
      out += sign + (sign === "{" ? "}" : "]");
      at += empty[0].length;
      continue;
    }
    if (sign === "{" || sign === "[") {
      depth += 1;
      out += sign + line();
    } else if (sign === "}" || sign === "]") {
      depth -= 1;
      out += line() + sign;
    } else if (sign === ",") out += sign + line();
    else if (sign === ":") out += ": ";
    else if (!/\s/.test(sign)) out += sign;
    at += 1;
  }
  return out;
}
