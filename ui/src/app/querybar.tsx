import { useSignal, useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import { FIELDS, queryOf, textOf, VALUES, type Field } from "./filter";
import { readNames, scheduleNames, taskNames } from "./names";
import { go, place } from "./router";

const MOST = 10;

/** Return what the last word of `text` may become. */
function completions(text: string): string[] {
  const word = /(\S*)$/.exec(text)?.[1] ?? "";
  const colon = word.indexOf(":");
  if (colon < 0) {
    return FIELDS.filter((field) => field.startsWith(word.toLowerCase()) && field !== word).map((field) => `${field}:`);
  }
  const field = word.slice(0, colon) as Field;
  const begun = word.slice(colon + 1).toLowerCase();
  const values = field === "task" ? taskNames.value : field === "schedule" ? scheduleNames.value : VALUES[field];
  return (values ?? [])
    .filter((value) => value.toLowerCase().includes(begun) && value !== begun)
    .map((value) => `${field}:${/\s/.test(value) ? `"${value}"` : value}`);
}

export function QueryBar() {
  const text = useSignal("");
  const open = useSignal(false);
  const lit = useSignal(-1);
  const input = useRef<HTMLInputElement>(null);

  useSignalEffect(() => {
    const { path, query } = place.value;
    text.value = path === "/runs" ? textOf(query) : "";
    open.value = false;
  });

  const found = open.value ? completions(text.value).slice(0, MOST) : [];

  function take(completion: string): void {
    const whole = !completion.endsWith(":");
    text.value = text.value.replace(/\S*$/, completion) + (whole ? " " : "");
    lit.value = -1;
    input.current?.focus();
  }

  function submit(event?: Event): void {
    event?.preventDefault();
    open.value = false;
    const query = queryOf(text.value).toString();
    go(`/runs${query ? `?${query}` : ""}`);
    document.getElementById("content")?.focus();
  }

  function onKeyDown(event: KeyboardEvent): void {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      open.value = true;
      lit.value = Math.max(-1, Math.min(found.length - 1, lit.value + step));
    } else if ((event.key === "Enter" || event.key === "Tab") && open.value && found[lit.value]) {
      event.preventDefault();
      take(found[lit.value] as string);
    } else if (event.key === "Escape") {
      if (open.value && found.length) open.value = false;
      else input.current?.blur();
    }
  }

  return (
    <form class="querybar" role="search" onSubmit={submit}>
      <input
        id="query"
        ref={input}
        type="text"
        role="combobox"
        aria-label="Search runs"
        aria-expanded={found.length > 0}
        aria-controls="completions"
        aria-autocomplete="list"
        aria-activedescendant={lit.value >= 0 ? `completion-${lit.value}` : undefined}
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        placeholder="Search runs: task:resize state:failed since:2h"
        value={text.value}
        onFocus={() => {
          void readNames();
          open.value = true;
        }}
        onBlur={() => (open.value = false)}
        onInput={(event) => {
          text.value = event.currentTarget.value;
          open.value = true;
          lit.value = -1;
        }}
        onKeyDown={onKeyDown}
      />
      <kbd aria-hidden="true">/</kbd>
      <ul id="completions" role="listbox" aria-label="Completions" hidden={found.length === 0}>
        {found.map((completion, index) => (
          <li
            key={completion}
            id={`completion-${index}`}
            role="option"
            aria-selected={index === lit.value}
            onMouseDown={(event) => {
              event.preventDefault();
              take(completion);
            }}
          >
            {completion}
          </li>
        ))}
      </ul>
    </form>
  );
}
