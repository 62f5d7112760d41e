import { ask } from "../../api/client";
import { Problem } from "../../api/problem";
import { useResource, type Resource } from "../../api/resource";
import { entriesOf, type Entry } from "./entries";
import type { Schema } from "./fields";

/** The entries of a form for the arguments of a task, with those that a run has. */
export function useEntries(task: string, args: string | null): Resource<Entry[]> {
  return useResource(task, async (signal) => entriesOf(await schemaOf(task, signal), args));
}

/** Return the schema of a task; one that says nothing, if the task is known to nobody any more. */
async function schemaOf(task: string, signal: AbortSignal): Promise<Schema> {
  try {
    return (await ask("GET /tasks/{name}/schema", { path: { name: task }, signal })) as Schema;
  } catch (error) {
    if (error instanceof Problem && error.status === 404) return {};
    throw error;
  }
}
