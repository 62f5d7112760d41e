import type { Run } from "../../api/types";
import type { Change } from "../../api/stream";
import { lastName } from "../../parts/state";

/** A run as a row: what the list shows of it, and no more, so that many fit. */
export interface Row {
  id: string;
  state: string;
  task: string;
  key: string | null;
  args: string;
  detail: string;
  /** The detail is an error. */
  failed: boolean;
  share: number | null;
  createdAt: string;
  dueAt: string;
  claimedAt: string | null;
  finishedAt: string | null;
  fence: number;
  worker: string | null;
  /** When the row changed last, to let it flash once. */
  changedAt: number;
}

const CUT = 160;
const FINAL = ["succeeded", "failed", "cancelled"];

export function isFinal(state: string): boolean {
  return FINAL.includes(state);
}

export function rowOf(run: Run, changedAt = 0): Row {
  return {
    id: run.id,
    state: run.state,
    task: run.task,
    key: run.key,
    args: argsOf(run.args),
    detail: detailOf(run).slice(0, CUT),
    failed: run.error !== null && run.state !== "succeeded",
    share: run.state === "running" ? (run.progress?.share ?? null) : null,
    createdAt: run.created_at,
    dueAt: run.due_at,
    claimedAt: run.claimed_at ?? run.attempts.at(-1)?.claimed_at ?? null,
    finishedAt: run.finished_at,
    fence: run.fence,
    worker: run.worker,
    changedAt,
  };
}

/** Return the arguments in one line, as `path="a.jpg" width=800`. */
function argsOf(args: unknown): string {
  if (args === null || args === undefined) return "";
  if (typeof args !== "object") return String(args).slice(0, CUT);
  return Object.entries(args)
    .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
    .join(" ")
    .slice(0, CUT);
}

function detailOf(run: Run): string {
  if (run.state === "running") return run.progress?.message ?? "";
  if (run.error && run.state !== "succeeded") return `${lastName(run.error.type)}: ${run.error.message}`;
  if (run.cancel_requested) return "asked to stop";
  if (run.parked) return "waits for its limit or rate";
  if (run.needs.length) return `waits for ${run.needs.length === 1 ? "another run" : `${run.needs.length} runs`}`;
  if (run.note) return run.note;
  if (run.reason && run.reason !== "accepted" && run.reason !== run.state) return run.reason.replaceAll("_", " ");
  return "";
}

/** Return the row after a change that the store recorded; the same row if the change is older. */
export function changed(row: Row, change: Change, at: number): Row {
  if (change.fence < row.fence || (isFinal(row.state) && change.fence === row.fence)) return row;
  const state = change.state ?? row.state;
  return {
    ...row,
    state,
    fence: change.fence,
    worker: change.worker ?? row.worker,
    claimedAt: state === "running" && change.fence > row.fence ? change.at : row.claimedAt,
    finishedAt: isFinal(state) ? change.at : row.finishedAt,
    changedAt: at,
  };
}
