import { signal } from "@preact/signals";
import { ask } from "../../api/client";
import { passes, Problem } from "../../api/problem";
import { listen, type Change } from "../../api/stream";
import type { Filter, Run } from "../../api/types";
import { now } from "../../app/clock";
import { couldMatch, filterOf } from "../../app/filter";
import { changed, rowOf, type Row } from "./rows";

const PAGE = 100;
const PACE = 2_000;

/**
 * The runs that a query finds, page after page. Rows keep their place: a change alters a row where it is, and new runs
 * wait until somebody asks for them.
 */
export class RunList {
  readonly rows = signal<Row[]>([]);
  readonly problem = signal<Problem | null>(null);
  readonly loading = signal(true);
  /** Runs that match and are not in the list. */
  readonly fresh = signal(0);
  readonly ended = signal(false);
  readonly searchedBackTo = signal<string | null>(null);
  readonly filter: Filter;

  private readonly query: URLSearchParams;
  private readonly stop = new AbortController();
  private readonly places = new Map<string, number>();
  private readonly unseen = new Set<string>();
  private readonly leave: () => void;
  private next: string | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private again: ReturnType<typeof setTimeout> | undefined;

  constructor(query: URLSearchParams) {
    this.query = query;
    this.filter = filterOf(query, now.peek());
    this.leave = listen(["runs"], (_, items) => this.hear(items as Change[] | null));
    void this.more();
  }

  close(): void {
    this.stop.abort();
    this.leave();
    clearTimeout(this.timer);
    clearTimeout(this.again);
  }

  /** Read the next page. */
  async more(): Promise<void> {
    if (this.ended.peek() || (this.loading.peek() && this.rows.peek().length)) return;
    this.loading.value = true;
    try {
      const page = await this.read(this.next);
      this.append(page.items);
      this.next = page.next;
      this.ended.value = page.next === null;
      this.searchedBackTo.value = page.searched_back_to ?? null;
      this.problem.value = null;
    } catch (error) {
      if (this.stop.signal.aborted) return;
      this.problem.value = error instanceof Problem ? error : new Problem(500, { detail: String(error) });
      if (passes(this.problem.value)) this.again = setTimeout(() => void this.more(), PACE);
    }
    this.loading.value = false;
  }

  private read(cursor: string | null) {
    const query = { ...this.filter, limit: PAGE, ...(cursor === null ? {} : { cursor }) };
    return ask("GET /runs", { query, signal: this.stop.signal });
  }

  private append(runs: Run[]): void {
    const added = runs.filter((run) => !this.places.has(run.id)).map((run) => rowOf(run));
    const rows = this.rows.peek();
    added.forEach((row, index) => this.places.set(row.id, rows.length + index));
    for (const run of runs) this.unseen.delete(run.id); // told by an event while the page was on its way
    this.fresh.value = this.unseen.size;
    this.rows.value = [...rows, ...added];
  }

  private hear(items: Change[] | null): void {
    const at = Date.now();
    const rows = items ? [...this.rows.peek()] : null;
    for (const change of items ?? []) {
      const place = change.id === null ? undefined : this.places.get(change.id);
      if (place !== undefined && rows) rows[place] = changed(rows[place] as Row, change, at);
      else if (change.id !== null && couldMatch(this.query, change)) this.unseen.add(change.id);
    }
    if (rows) this.rows.value = rows;
    this.timer ??= setTimeout(() => this.unlessHidden(), items ? PACE : 0);
  }

  /** A tab that is hidden reads when it is shown. */
  private unlessHidden(): void {
    this.timer = undefined;
    if (document.visibilityState !== "hidden") void this.refresh();
  }

  /** Read the first page again: fill in what events do not tell, and count what is new. */
  private async refresh(): Promise<void> {
    try {
      const page = await this.read(null);
      const rows = [...this.rows.peek()];
      for (const run of page.items) {
        const place = this.places.get(run.id);
        if (place === undefined) this.unseen.add(run.id);
        else rows[place] = rowOf(run, rows[place]?.changedAt);
      }
      const found = new Set(page.items.map((run) => run.id));
      if (page.next === null) for (const id of this.unseen) if (!found.has(id)) this.unseen.delete(id);
      this.rows.value = rows;
      this.fresh.value = this.unseen.size;
    } catch {
      // The next change tries again; the dot in the rail says that the service does not answer.
    }
  }
}
