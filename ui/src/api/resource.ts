import { useSignal, type ReadonlySignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { passes, Problem } from "./problem";
import { isAsleep, listen, type Topic } from "./stream";

export interface Resource<T> {
  data: ReadonlySignal<T | null>;
  problem: ReadonlySignal<Problem | null>;
  loading: ReadonlySignal<boolean>;
  reload: () => void;
}

/** The least time between two reads because of events. */
const PACE = 1_000;
/** After a problem that passes, a read is tried again by itself. */
const AGAIN = 2_000;

/**
 * Reads something, keeps it, and reads it again when one of `topics` changes. What was read stays on the page until
 * there is something newer, so that nothing jumps. Another `key` is another thing.
 */
export function useResource<T>(
  key: string,
  load: (signal: AbortSignal) => Promise<T>,
  topics: readonly Topic[] = [],
): Resource<T> {
  const data = useSignal<T | null>(null);
  const problem = useSignal<Problem | null>(null);
  const loading = useSignal(true);
  const latest = useRef(load);
  latest.current = load;
  const again = useRef<() => void>(() => undefined);

  useEffect(() => {
    let controller: AbortController | null = null;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let lastAt = 0;

    async function read(): Promise<void> {
      clearTimeout(timer);
      timer = undefined;
      controller?.abort();
      const mine = new AbortController();
      controller = mine;
      lastAt = Date.now();
      loading.value = true;
      try {
        const found = await latest.current(mine.signal);
        if (mine.signal.aborted) return;
        data.value = found;
        problem.value = null;
      } catch (error) {
        if (mine.signal.aborted) return;
        problem.value = error instanceof Problem ? error : new Problem(500, { detail: String(error) });
        if (passes(problem.value)) timer = setTimeout(unlessHidden, AGAIN);
      }
      loading.value = false;
    }

    /** A tab that is hidden reads when it is shown. */
    function unlessHidden(): void {
      timer = undefined;
      if (!isAsleep()) void read();
    }

    function soon(): void {
      timer ??= setTimeout(unlessHidden, Math.max(0, lastAt + PACE - Date.now()));
    }

    data.value = null;
    problem.value = null;
    again.current = () => void read();
    void read();
    const leave = topics.length ? listen(topics, soon) : () => undefined;
    return () => {
      leave();
      clearTimeout(timer);
      controller?.abort();
    };
  }, [key]);

  return { data, problem, loading, reload: () => again.current() };
}
