import { useSignal, useSignalEffect } from "@preact/signals";
import { ask, send } from "../../api/client";
import { Problem } from "../../api/problem";
import type { RetryBody, Schedule, ScheduleBody, TriggerView } from "../../api/types";
import { readNames, taskNames } from "../../app/names";
import { MY_ZONE } from "../../app/preferences";
import { Conflict } from "../../parts/conflict";
import { Dialog } from "../../parts/dialog";
import { Time } from "../../parts/time";
import { say } from "../../parts/toasts";
import { FormButtons, Wrong } from "../../parts/form";

interface Props {
  /** Null: a new one. */
  schedule: Schedule | null;
  etag: string | null;
  onClose: () => void;
  onSaved: () => void;
}

/** Edit a schedule in the version that was read. If somebody else has changed it, both versions are shown. */
export function EditDialog({ schedule, etag, onClose, onSaved }: Props) {
  const id = useSignal(schedule?.id ?? "");
  const trigger = useSignal(schedule?.trigger ?? "");
  const task = useSignal(schedule?.task ?? "");
  const args = useSignal(JSON.stringify(schedule?.args ?? {}, null, 2));
  const tag = useSignal(etag);
  const meaning = useSignal<TriggerView | string | null>(null);
  const wrong = useSignal("");
  const theirs = useSignal<Schedule | null>(null);

  useSignalEffect(() => {
    void readNames();
    const text = trigger.value.trim();
    const timer = setTimeout(() => {
      if (!text) return;
      ask("POST /triggers/explain", { body: { text, count: 4 } })
        .then((found) => (meaning.value = found))
        .catch((error: unknown) => (meaning.value = error instanceof Problem ? error.message : ""));
    }, 250);
    return () => clearTimeout(timer);
  });

  async function save(event: Event): Promise<void> {
    event.preventDefault();
    wrong.value = "";
    try {
      const edited = { trigger: trigger.value, task: task.value, args: JSON.parse(args.value) as Record<string, unknown> };
      const body: ScheduleBody = { ...kept(schedule), ...edited };
      const headers: Record<string, string> = tag.value ? { "If-Match": tag.value } : { "If-None-Match": "*" };
      await send("PUT /schedules/{id}", { path: { id: id.value }, body, headers });
      onClose();
      onSaved();
      say(`${id.value} saved`);
    } catch (error) {
      wrong.value = error instanceof Error ? error.message : String(error);
      if (error instanceof Problem && error.status === 412) await compare();
    }
  }

  async function compare(): Promise<void> {
    const reply = await send("GET /schedules/{id}", { path: { id: id.value } });
    theirs.value = reply.data;
    tag.value = reply.etag;
  }

  const found = meaning.value;
  return (
    <Dialog title={schedule ? `Edit ${schedule.id}` : "New schedule"} onClose={onClose} wide>
      <form class="form" onSubmit={save}>
        {!schedule && <Field name="Name" of={id} />}
        <Field name="When (such as: daily 02:30 Europe/Berlin, every 5m, cron 0 2 * * *)" of={trigger} />
        <div class="meaning" aria-live="polite">
          {typeof found === "string" && <p class="bad">{found}</p>}
          {found && typeof found === "object" && (
            <>
              <p>
                {found.words} <span class="dim">({found.zone})</span>
              </p>
              <ul class="dim">
                {found.fires.map((fire) => (
                  <li key={fire.utc}>
                    {fire.weekday} {fire.local.replace("T", " ").slice(0, 19)}
                    {found.zone !== MY_ZONE && (
                      <>
                        {" "}
                        · here <Time at={fire.utc} own={found.zone} />
                      </>
                    )}
                  </li>
                ))}
              </ul>
              {found.findings.map((finding) => (
                <p key={finding.code} class="warning">
                  {finding.message} {finding.hint}
                </p>
              ))}
            </>
          )}
        </div>
        <Field name="Task" of={task} list={taskNames.value} />
        <div class="field">
          <label for="schedule-args">Arguments, as JSON</label>
          <textarea id="schedule-args" rows={4} value={args.value} onInput={(event) => (args.value = event.currentTarget.value)} />
        </div>
        <Wrong of={wrong} />
        {theirs.value && (
          <Conflict
            rows={[
              ["when", trigger.value, theirs.value.trigger],
              ["task", task.value, theirs.value.task],
              ["arguments", args.value, JSON.stringify(theirs.value.args, null, 2)],
            ]}
          />
        )}
        <FormButtons verb={theirs.value ? "Save mine over theirs" : "Save"} leave="Discard" onClose={onClose} />
      </form>
    </Dialog>
  );
}

/** Return the options that the form does not show: a save replaces the whole schedule, and must not lose them. */
function kept(schedule: Schedule | null): Partial<ScheduleBody> {
  if (!schedule) return {};
  const { priority, queue, grace, start, end, buffer, times, timeout, expect } = schedule;
  const overlap = schedule.overlap as ScheduleBody["overlap"];
  const catchUp = schedule.catch_up as ScheduleBody["catch_up"];
  const lost = schedule.lost as ScheduleBody["lost"];
  const breaker = schedule.breaker as ScheduleBody["breaker"];
  const ends = { start, end, buffer, times, breaker };
  return { key: schedule.key || null, priority, queue, grace, ...ends, timeout, expect, lost, retry: retryOf(schedule), overlap, catch_up: catchUp };
}

/** Return the retries that the schedule has of its own; null: those of its task. */
function retryOf(schedule: Schedule): RetryBody | null {
  if (!schedule.retry) return null;
  const { limit, backoff, delay, max_delay, jitter, factor } = schedule.retry;
  return { limit, backoff, delay, max_delay, jitter, factor };
}

function Field({ name, of, list }: { name: string; of: { value: string }; list?: string[] }) {
  const id = `field-${name.split(" ")[0]}`;
  return (
    <div class="field">
      <label for={id}>{name}</label>
      <input id={id} type="text" required list={list ? `${id}-list` : undefined} value={of.value} onInput={(event) => (of.value = event.currentTarget.value)} />
      {list && <datalist id={`${id}-list`}>{list.map((each) => <option key={each} value={each} />)}</datalist>}
    </div>
  );
}
