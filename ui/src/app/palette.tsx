import { signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { Dialog } from "../parts/dialog";
import { PAGES } from "../pages/registry";
import { allBindings } from "./keys";
import { readNames, scheduleNames, taskNames } from "./names";
import { act } from "../parts/act";
import { go } from "./router";
import { may } from "./session";
import { views } from "./views";

export const paletteOpen = signal(false);

interface Entry {
  name: string;
  kind: string;
  run: () => void;
}

const MOST = 12;

function entries(text: string): Entry[] {
  const pages = PAGES.filter((page) => page.letter).map((page) => entry(page.name, "go", () => go(page.path)));
  const acts = allBindings()
    .filter((binding) => binding.group !== "Go to" && binding.keys !== "ctrl+k")
    .map((binding) => entry(binding.does, "act", binding.run));
  const tasks = taskNames.value.map((name) => entry(name, "task", () => go(`/tasks/${encodeURIComponent(name)}`)));
  const schedules = scheduleNames.value.map((id) =>
    entry(id, "schedule", () => go(`/schedules/${encodeURIComponent(id)}`)),
  );
  const saved = views.value.map((view) => entry(view.name, "view", () => go(view.path)));
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const known = [...pages, ...saved, ...acts, ...tasks, ...schedules, ...(words.length && may("operate") ? deeds() : [])].filter((each) =>
    words.every((word) => `${each.kind} ${each.name}`.toLowerCase().includes(word)),
  );
  return [...known.slice(0, MOST), ...(text.trim() ? questions(text.trim()) : [])];
}

/** What can be done with tasks and schedules at once; the toast has the undo. */
function deeds(): Entry[] {
  const tasks = taskNames.value.flatMap((name) => [
    entry(`Pause ${name}`, "act", () => void act("POST /tasks/{name}/pause", { path: { name }, body: {} }, `Paused ${name}`)),
    entry(`Resume ${name}`, "act", () => void act("POST /tasks/{name}/resume", { path: { name }, body: {} }, `Resumed ${name}`)),
  ]);
  const schedules = scheduleNames.value.flatMap((id) => [
    entry(`Run ${id} now`, "act", () => void act("POST /schedules/{id}/run-now", { path: { id }, body: {} }, `${id} runs now`)),
    entry(`Pause the schedule ${id}`, "act", () => void act("POST /schedules/{id}/pause", { path: { id }, body: {} }, `${id} paused`)),
    entry(`Resume the schedule ${id}`, "act", () => void act("POST /schedules/{id}/resume", { path: { id }, body: {} }, `${id} resumed`)),
  ]);
  return [...tasks, ...schedules];
}

function questions(text: string): Entry[] {
  const subject = text.replace(/^why\s+/i, "");
  return [
    entry(`Why does ${subject} not run?`, "why", () => go(`/why?subject=${encodeURIComponent(subject)}`)),
    entry(`Runs with “${text}”`, "search", () => go(`/runs?q=${encodeURIComponent(text)}`)),
    ...(/^[\w-]{16,}$/.test(text) ? [entry(`Run ${text}`, "run", () => go(`/runs/${encodeURIComponent(text)}`))] : []),
  ];
}

function entry(name: string, kind: string, run: () => void): Entry {
  return { name, kind, run };
}

export function Palette() {
  return paletteOpen.value ? <OpenPalette /> : null;
}

function OpenPalette() {
  const text = useSignal("");
  const lit = useSignal(0);
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => void readNames(), []);
  const found = entries(text.value);

  function choose(chosen: Entry | undefined): void {
    paletteOpen.value = false;
    if (chosen) setTimeout(chosen.run); // after the dialog has given the focus back
  }

  function onKeyDown(event: KeyboardEvent): void {
    if (event.key === "Enter") {
      event.preventDefault();
      choose(found[lit.value]);
    }
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    event.preventDefault();
    lit.value = Math.max(0, Math.min(found.length - 1, lit.value + (event.key === "ArrowDown" ? 1 : -1)));
    list.current?.children[lit.value]?.scrollIntoView({ block: "nearest" });
  }

  return (
    <Dialog title="Go, act, ask why" onClose={() => (paletteOpen.value = false)}>
      <input
        type="text"
        role="combobox"
        aria-label="What to do"
        aria-expanded="true"
        aria-controls="palette"
        aria-activedescendant={found.length ? `entry-${lit.value}` : undefined}
        autofocus
        autocomplete="off"
        spellcheck={false}
        placeholder="A page, a task, a schedule, an id – or a question"
        value={text.value}
        onInput={(event) => {
          text.value = event.currentTarget.value;
          lit.value = 0;
        }}
        onKeyDown={onKeyDown}
      />
      <ul id="palette" class="palette" role="listbox" aria-label="Choices" ref={list}>
        {found.map((each, index) => (
          <li
            key={`${each.kind} ${each.name}`}
            id={`entry-${index}`}
            role="option"
            aria-selected={index === lit.value}
            onClick={() => choose(each)}
          >
            <span>{each.name}</span>
            <span class="dim">{each.kind}</span>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
