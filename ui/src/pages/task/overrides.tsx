import { useSignal, type Signal } from "@preact/signals";
import { send, type Reply } from "../../api/client";
import { Problem } from "../../api/problem";
import { useResource } from "../../api/resource";
import type { OverrideBody, Task, TaskOverrides } from "../../api/types";
import { secondsOf, span } from "../../app/format";
import { Conflict } from "../../parts/conflict";
import { Dialog } from "../../parts/dialog";
import { Show } from "../../parts/empty";
import { Time } from "../../parts/time";
import { say } from "../../parts/toasts";
import { FormButtons, NoteField, Wrong } from "../../parts/form";

const NAMES = ["limit", "rate", "retries", "timeout", "enabled"] as const;
type Name = (typeof NAMES)[number];
type Texts = Record<Name, string>;

const ABOUT: Record<Name, string> = {
  limit: "Runs at once (such as 5)",
  rate: "Starts (such as 100 per 60s)",
  retries: "Retries (such as 3)",
  timeout: "Timeout (such as 30s)",
  enabled: "The task",
};

/** Return overrides as somebody writes them; empty: the code decides. */
export function textsOf(given: TaskOverrides | null): Texts {
  return {
    limit: given?.limit?.total ? String(given.limit.total) : "",
    rate: given?.rate ? `${given.rate.n} per ${given.rate.per}s` : "",
    retries: given?.retry ? String(given.retry.limit ?? "") : "",
    timeout: given?.timeout ? `${given.timeout}s` : "",
    enabled: given?.enabled === false ? "off" : "",
  };
}

/** Return what differs from the overrides in force; null takes one away. Raises SyntaxError. */
function changesOf(texts: Texts, given: TaskOverrides | null): OverrideBody {
  const before = textsOf(given);
  const differs = (name: Name) => texts[name].trim() !== before[name];
  const body: OverrideBody = {};
  if (differs("limit")) body.limit = texts.limit.trim() ? { per_key: given?.limit?.per_key ?? null, total: whole(texts.limit) } : null;
  if (differs("rate")) body.rate = texts.rate.trim() ? rateOf(texts.rate) : null;
  if (differs("retries")) body.retry = texts.retries.trim() ? { ...(given?.retry ?? {}), limit: whole(texts.retries) } : null;
  if (differs("timeout")) body.timeout = texts.timeout.trim() ? seconds(texts.timeout) : null;
  if (differs("enabled")) body.enabled = texts.enabled === "off" ? false : null;
  return body;
}

function whole(text: string): number {
  if (!/^\d+$/.test(text.trim())) throw new SyntaxError(`${text.trim()} is not a whole number`);
  return Number(text);
}

function seconds(text: string): number {
  const found = secondsOf(text);
  if (!found) throw new SyntaxError(`${text.trim()} is not a span such as 30s, 5m or 2h`);
  return found;
}

function rateOf(text: string): { n: number; per: number } {
  const found = /^(\d+)\s*(?:per|\/)\s*(.+)$/.exec(text.trim());
  if (!found) throw new SyntaxError(`${text.trim()} is not a rate such as 100 per 60s`);
  return { n: Number(found[1]), per: seconds(found[2] ?? "") };
}

/** Says what operators have set over the code, who, and why. */
export function OverridesInForce({ task }: { task: Task }) {
  const given = task.overrides;
  if (!given) return null;
  const texts = textsOf(given);
  const own: Record<Name, string> = {
    limit: task.limit?.total ? String(task.limit.total) : "no limit",
    rate: task.rate ? `${task.rate.n} per ${span(task.rate.per)}` : "no rate",
    retries: task.retries === null ? "without end" : String(task.retries),
    timeout: task.timeout === null ? "none" : span(task.timeout),
    enabled: task.enabled ? "on" : "off",
  };
  return (
    <section class="overrides" aria-label="Overrides">
      <h2>Overrides</h2>
      <p class="dim">
        They win over the code until somebody takes them away. Set by {given.by ?? "somebody"} <Time at={given.at} />
        {given.note ? `: “${given.note}”` : "."}
      </p>
      <dl class="details">
        {NAMES.filter((name) => texts[name]).map((name) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <strong>{texts[name]}</strong> <span class="dim">the code says {own[name]}</span>
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

interface Props {
  name: string;
  onClose: () => void;
  reload: () => void;
}

/** Change the overrides in the version that was read. If somebody else has changed them, both versions are shown. */
export function OverrideDialog({ name, onClose, reload }: Props) {
  const read = useResource(name, (signal) => send("GET /tasks/{name}", { path: { name }, signal }));
  return (
    <Dialog title={`Override ${name}`} onClose={onClose}>
      <Show of={read}>{(found) => <Form name={name} found={found} onClose={onClose} reload={reload} />}</Show>
    </Dialog>
  );
}

function Form({ name, found, onClose, reload }: Props & { found: Reply<Task> }) {
  const current = useSignal(found);
  const texts = useSignal(textsOf(found.data.overrides));
  const note = useSignal("");
  const wrong = useSignal("");
  const theirs = useSignal<Texts | null>(null);
  const path = { name };

  async function save(event: Event): Promise<void> {
    event.preventDefault();
    wrong.value = "";
    try {
      const { data, etag } = current.value;
      const body = { ...changesOf(texts.value, data.overrides), note: note.value || null };
      await send("PATCH /tasks/{name}", { path, body, headers: etag ? { "If-Match": etag } : {} });
      onClose();
      say(`Overrides of ${name} saved`);
      reload();
    } catch (error) {
      wrong.value = error instanceof Error ? error.message : String(error);
      if (error instanceof Problem && error.status === 412) await compare();
    }
  }

  async function compare(): Promise<void> {
    current.value = await send("GET /tasks/{name}", { path });
    theirs.value = textsOf(current.value.data.overrides);
  }

  const other = theirs.value;
  return (
    <form class="form" onSubmit={(event) => void save(event)}>
      <p>What you write wins over the code, in all processes and at once. What you leave empty is as the code says.</p>
      {NAMES.map((each) => (
        <Field key={each} name={each} texts={texts} />
      ))}
      <NoteField of={note} />
      <Wrong of={wrong} />
      {other && <Conflict rows={NAMES.map((each) => [each, texts.value[each] || "as the code says", other[each] || "as the code says"])} />}
      <FormButtons verb={other ? "Save mine over theirs" : "Save"} onClose={onClose} />
    </form>
  );
}

function Field({ name, texts }: { name: Name; texts: Signal<Texts> }) {
  const id = `override-${name}`;
  const write = (event: { currentTarget: { value: string } }) => (texts.value = { ...texts.value, [name]: event.currentTarget.value });
  return (
    <div class="field">
      <label for={id}>{ABOUT[name]}</label>
      {name === "enabled" ? (
        <select id={id} value={texts.value.enabled} onChange={write}>
          <option value="">is as the code says</option>
          <option value="off">is disabled</option>
        </select>
      ) : (
        <input id={id} type="text" autocomplete="off" value={texts.value[name]} onInput={write} />
      )}
    </div>
  );
}
