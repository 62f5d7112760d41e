import { useSignal, useSignalEffect } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { ask } from "../../api/client";
import { useResource } from "../../api/resource";
import { watch } from "../../api/stream";
import { readNames, scheduleNames, taskNames } from "../../app/names";
import { go, place, search } from "../../app/router";
import { say } from "../../parts/toasts";
import { CopyButton } from "../../parts/copy";
import { Empty, Show } from "../../parts/empty";
import { Head } from "../../parts/page";
import { needsOf } from "../now/needs";
import { readNow } from "../now/picture";
import { Answer, textOf } from "./answer";
import { Cures } from "./cures";

const MOST = 12;

/** Ask about anything. The address holds the question, so that an answer can be shared. */
export default function WhyPage() {
  const shown = useRef(place.peek());
  const subject = useSignal(shown.current.query.get("subject") ?? "");
  const key = useSignal(shown.current.query.get("key") ?? "");
  useSignalEffect(() => {
    void readNames();
    if (place.value === shown.current) return; // an effect runs after the first paint: somebody may have typed by then
    shown.current = place.value;
    subject.value = place.value.query.get("subject") ?? "";
    key.value = place.value.query.get("key") ?? "";
  });

  function submit(event: Event): void {
    event.preventDefault();
    const query = new URLSearchParams({ subject: subject.value.trim() });
    if (key.value.trim()) query.set("key", key.value.trim());
    if (subject.value.trim()) go(`/why?${query}`);
  }

  return (
    <>
      <Head title="Why?" about="Ask about a task, a schedule or a run: why does it not run, and what would change that?" />
      <form class="ask" role="search" aria-label="Ask why" onSubmit={submit}>
        <div class="field grow">
          <label for="subject">Task, schedule or id of a run</label>
          <input
            id="subject"
            type="text"
            list="subjects"
            autocomplete="off"
            spellcheck={false}
            value={subject.value}
            onInput={(event) => (subject.value = event.currentTarget.value)}
          />
          <datalist id="subjects">
            {[...taskNames.value, ...scheduleNames.value].map((name) => (
              <option key={name} value={name} />
            ))}
          </datalist>
        </div>
        <div class="field">
          <label for="key">Key (optional)</label>
          <input id="key" type="text" value={key.value} onInput={(event) => (key.value = event.currentTarget.value)} />
        </div>
        <button type="submit" class="primary">
          Ask
        </button>
      </form>
      {place.value.query.get("subject") ? <Asked key={search.value} /> : <Examples />}
    </>
  );
}

function Asked() {
  const query = place.peek().query;
  const subject = query.get("subject") ?? "";
  const why = useResource(
    search.value,
    (signal) => ask("GET /why", { query: { subject, key: query.get("key") }, signal }),
    ["runs", "tasks", "schedules", "workers"],
  );
  const watching = useSignal(false);
  useSignalEffect(() => {
    const found = why.data.value;
    if (watching.value && found && !found.held) {
      watching.value = false;
      say(`${found.subject}: ${found.answer}`);
    }
  });
  useSignalEffect(() => (watching.value ? watch() : undefined)); // in a tab that nobody sees, too
  return (
    <Show of={why}>
      {(found) => (
        <Answer why={found} cures={<Cures of={found} reload={why.reload} />}>
          <CopyButton text={textOf(found)} label="Copy the answer" />
          {found.held && (
            <button type="button" class="small" aria-pressed={watching.value} onClick={() => (watching.value = !watching.value)}>
              {watching.value ? "Watching: another tab may be open meanwhile" : "Tell me when it changes"}
            </button>
          )}
        </Answer>
      )}
    </Show>
  );
}

/** What waits for an answer now, then everything else that can be asked about. */
function Examples() {
  const picture = useResource("now", readNow, ["tasks", "schedules", "flows", "workers"]);
  const needs = picture.data.value ? needsOf(picture.data.value).slice(0, MOST) : [];
  const names = [...new Set([...taskNames.value, ...scheduleNames.value])].slice(0, MOST);
  return (
    <>
      {needs.length > 0 && (
        <Questions title="What needs an answer now">
          {needs.map((need) => (
            <Question key={need.id} subject={need.subject} of={need.key}>
              {need.title}
            </Question>
          ))}
        </Questions>
      )}
      {names.length > 0 ? (
        <Questions title={needs.length ? "Or ask about" : "For example"}>
          {names.map((name) => (
            <Question key={name} subject={name}>
              {name}
            </Question>
          ))}
        </Questions>
      ) : (
        picture.data.value && (
          <Empty title="There is nothing to ask about yet" command="rota worker -A app">
            <p>Tasks and schedules can be asked about once a worker of your app has started. A terminal answers, too: rota why NAME.</p>
          </Empty>
        )
      )}
    </>
  );
}

function Questions({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      <ul class="examples">{children}</ul>
    </section>
  );
}

function Question({ subject, of, children }: { subject: string; of?: string | undefined; children: ComponentChildren }) {
  const query = new URLSearchParams({ subject, ...(of ? { key: of } : {}) });
  return (
    <li>
      <button type="button" class="small" onClick={() => go(`/why?${query}`)}>
        {children}
      </button>
    </li>
  );
}
