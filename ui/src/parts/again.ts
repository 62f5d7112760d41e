import type { ErrorGroup } from "../api/types";
import { lastName } from "./state";

export const POISON = "poison";

/** Poison may end another worker, and arguments that do not fit fail again: somebody has to look at such a run first. */
export function isWorthARetry(group: ErrorGroup): boolean {
  return group.type !== POISON && lastName(group.type) !== "InvalidArguments";
}
