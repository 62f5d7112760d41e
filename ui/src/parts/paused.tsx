import { ask } from "../api/client";
import { useResource } from "../api/resource";
import { may } from "../app/session";
import { Ago } from "./time";

export interface Pause {
  by: string | null;
  at: string;
  note: string | null;
}

interface Props {
  task: string;
  /** The schedule that is paused; none: the whole task is. */
  schedule?: string;
  /** Is the next tick of the schedule only put off? The audit alone knows by whom. */
  postponed?: boolean;
}

/** Who has paused it, since when, and why: beside every word that says that something is paused. */
export function PausedBy(props: Props) {
  const { task, schedule } = props;
  const found = useResource(`paused ${task} ${schedule ?? ""}`, (signal) => readPause(props, signal), ["decisions", "schedules"]);
  const pause = found.data.value;
  return pause ? (
    <span class="pausedby">
      {pause.by ? ` by ${pause.by}` : ""} <Ago at={pause.at} />
      {pause.note ? `: “${pause.note}”` : ""}
    </span>
  ) : null;
}

async function readPause({ task, schedule, postponed }: Props, signal: AbortSignal): Promise<Pause | null> {
  if (postponed) {
    if (!may("operate") || !schedule) return null;
    const { items } = await ask("GET /audit", { query: { action: "schedules.pause", subject: schedule, limit: 1 }, signal });
    return items[0] ? { by: items[0].by, at: items[0].at, note: items[0].note } : null;
  }
  const { items } = await ask("GET /decisions", { query: { task, reason: "paused", limit: 100 }, signal });
  const row = items.find((each) => each.key === (schedule === undefined ? "" : keyOfSchedule(schedule)));
  return row ? { by: row.by, at: row.last_at, note: row.note } : null;
}

/** The key under which decisions about a schedule are kept. */
export function keyOfSchedule(id: string): string {
  return `schedule:${id}`;
}
