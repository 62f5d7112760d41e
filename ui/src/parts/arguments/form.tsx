import type { Entry } from "./entries";

/** The fields of a task's arguments. What is left out stays what it is, or becomes the default of the task. */
export function ArgumentFields({ entries }: { entries: readonly Entry[] }) {
  if (entries.length === 0) return <p class="dim">The task takes no arguments.</p>;
  return (
    <fieldset class="arguments">
      <legend>Arguments</legend>
      {entries.map((entry) => (
        <ArgumentField key={entry.field.name} entry={entry} />
      ))}
    </fieldset>
  );
}

function ArgumentField({ entry }: { entry: Entry }) {
  const { name, required, nullable, preset, about } = entry.field;
  const id = `arg-${name}`;
  return (
    <div class="field argument" data-given={entry.given.value}>
      <label for={id}>
        <span class="mono">{name}</span> <span class="about">{required ? about : `${about}, optional`}</span>
      </label>
      <Input entry={entry} id={id} />
      <span class="beside" id={`${id}-beside`}>
        {entry.masked && !entry.given.value && "hidden: it stays unless you write another value"}
        {!entry.given.value && !entry.masked && entry.before === null && (preset === null ? "left out" : `the task takes ${preset}`)}
        {entry.given.value && (!required || entry.masked) && (
          <button type="button" class="small quiet" onClick={() => (entry.given.value = false)}>
            {entry.masked ? "Keep what it was" : entry.before === null ? "Leave it out" : "Take it away"}
          </button>
        )}
        {!entry.given.value && entry.before !== null && !entry.masked && (
          <>
            taken away{" "}
            <button type="button" class="small quiet" onClick={() => (entry.given.value = true)}>
              Keep it
            </button>
          </>
        )}
        {nullable && (
          <label class="inline">
            <input
              type="checkbox"
              aria-label={`${name} is null`}
              checked={entry.given.value && entry.isNull.value}
              onChange={(event) => {
                entry.isNull.value = event.currentTarget.checked;
                entry.given.value = true;
              }}
            />{" "}
            null
          </label>
        )}
      </span>
    </div>
  );
}

function Input({ entry, id }: { entry: Entry; id: string }) {
  const { kind, choices, secret } = entry.field;
  const common = { id, "aria-describedby": `${id}-beside`, disabled: entry.given.value && entry.isNull.value };
  const write = (event: { currentTarget: { value: string } }) => entry.write(event.currentTarget.value);
  if (kind === "boolean" || kind === "choice") {
    const shown = kind === "boolean" ? ["true", "false"] : choices;
    return (
      <select {...common} value={entry.given.value ? entry.text.value : ""} onChange={write}>
        {!entry.given.value && <option value="">–</option>}
        {shown.map((each) => (
          <option key={each} value={each}>
            {kind === "boolean" ? { true: "yes", false: "no" }[each] : each.replace(/^"(.*)"$/, "$1")}
          </option>
        ))}
      </select>
    );
  }
  if (kind === "json" || (kind === "text" && entry.text.value.includes("\n"))) {
    return <textarea {...common} class="mono" rows={Math.min(12, Math.max(2, entry.text.value.split("\n").length))} spellcheck={false} value={entry.text.value} onInput={write} />;
  }
  if (secret) return <input {...common} type="password" autocomplete="off" value={entry.text.value} onInput={write} />;
  const mode = kind === "integer" ? "numeric" : kind === "number" ? "decimal" : undefined;
  return <input {...common} type="text" autocomplete="off" {...(mode ? { inputMode: mode } : {})} value={entry.text.value} onInput={write} />;
}
