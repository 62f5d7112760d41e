import type { ErrorGroup } from "../api/types";
import { lastName } from "./state";

export const POISON = "poison";

const OWN = ["rota.lease:", "rota.session:", "rota.undo:"];

/** Work of rota's own is made by pages of its own: nobody retries or changes a run of it. */
export function isOwn(task: string): boolean {
  return task === "rota.operation" || OWN.some((name) => task.startsWith(name));
}

/** Poison may end another worker, and arguments that do not fit fail again: somebody has to look at such a run first. */
export function isWorthARetry(group: ErrorGroup): boolean {
  return !isOwn(group.task) && group.type !== POISON && lastName(group.type) !== "InvalidArguments";
}
