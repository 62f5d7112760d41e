import { useSignal, useSignalEffect } from "@preact/signals";
import { ask } from "../../api/client";
import { useResource } from "../../api/resource";
import { readNames, scheduleNames, taskNames } from "../../app/names";
import { go, place, search } from "../../app/router";
import { say } from "../../parts/toasts";
import { CopyButton } from "../../parts/copy";
import { Show } from "../../parts/empty";
import { Head } from "../../parts/page";
import { Answer, textOf } from "./answer";

/** Ask about anything. The address holds the question, so that an answer can be shared. */
export default function WhyPage() {
  const subject = useSignal("");
  const key = useSignal("");
  useSignalEffect(() => {
    subject.value = place.value.query.get("subject") ?? "";
    key.value = place.value.query.get("key") ?? "";
    void readNames();
  });

  function submit(event: Event): void {
    event.preventDefault();
    const query = new URLSearchParams({ subject: subject.value.trim() });
    if (key.value.trim()) query.set("key", key.value.trim());
    if (subject.value.trim()) go(`/why?${query}`);
  }

  return (
    <>
      <Head title="Why?" about="Ask about a task, a schedule, a run or a flow@period: why does it not run, and what would change that?" />
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
  return (
    <Show of={why}>
      {(found) => (
        <Answer why={found}>
          <CopyButton text={textOf(found)} label="Copy the answer" />
          {found.held && (
            <button type="button" class="small" aria-pressed={watching.value} onClick={() => (watching.value = !watching.value)}>
              {watching.value ? "Watching …" : "Tell me when it changes"}
            </button>
          )}
        </Answer>
      )}
    </Show>
  );
}

function Examples() {
  const names = [...taskNames.value.slice(0, 6), ...scheduleNames.value.slice(0, 4)];
  return (
    <section>
      <h2>For example</h2>
      <ul class="examples">
        {names.map((name) => (
          <li key={name}>
            <button type="button" class="small" onClick={() => go(`/why?subject=${encodeURIComponent(name)}`)}>
              Why does {name} not run?
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
