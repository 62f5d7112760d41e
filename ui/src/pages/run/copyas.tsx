import { API } from "../../api/client";
import type { Run } from "../../api/types";
import { CopyButton } from "../../parts/copy";

function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function curlOf(run: Run, args: string): string {
  const key = run.key === null ? "" : `, "key": ${JSON.stringify(run.key)}`;
  const body = `{"task": ${JSON.stringify(run.task)}, "args": ${args}${key}}`;
  const address = `${window.location.origin}${API}/runs`;
  return [
    `curl ${address}`,
    `-H "Authorization: Bearer $ROTA_TOKEN"`,
    `-H "Content-Type: application/json"`,
    `-d ${shellQuoted(body)}`,
  ].join(" \\\n     ");
}

function commandOf(run: Run, args: string): string {
  return `rota submit ${run.task} --args ${shellQuoted(args)}`;
}

/** Return JSON as Python: true, false and null have other names there. */
function pythonOf(run: Run, args: string): string {
  const literal = args.replace(/"(?:[^"\\]|\\.)*"|\b(true|false|null)\b/g, (word, name: string | undefined) =>
    name ? { true: "True", false: "False", null: "None" }[name] ?? word : word,
  );
  return `await app.submit(${JSON.stringify(run.task)}, **${literal})`;
}

/** The same submit again, from elsewhere. Masked arguments stay masked. */
export function CopyAs({ run, args }: { run: Run; args: string | null }) {
  if (args === null || args === "null") return null;
  return (
    <section>
      <h2>The same submit from elsewhere</h2>
      <div class="row">
        <CopyButton text={curlOf(run, args)} label="Copy as curl" />
        <CopyButton text={commandOf(run, args)} label="Copy as command" />
        <CopyButton text={pythonOf(run, args)} label="Copy as Python" />
      </div>
    </section>
  );
}
