import { ask } from "../../api/client";
import { useResource } from "../../api/resource";
import type { Count } from "../../api/types";
import { now } from "../../app/clock";
import { filterOf } from "../../app/filter";
import { count } from "../../app/format";
import { go, place } from "../../app/router";
import { lastName, StateMark, STATES } from "../../parts/state";

type Facet = "state" | "task" | "error";
const MOST = 12;

/** Counts beside the values of a field. Each count leaves its own field out of the filter: it says what a click finds. */
export function Facets({ query }: { query: URLSearchParams }) {
  const key = query.toString();
  const counts = useResource(key, (signal) => readAll(query, signal), ["runs"]);
  const found = counts.data.value;
  return (
    <details class="facets" open={window.innerWidth > 1000}>
      <summary>Filter</summary>
      <FacetList name="state" title="State" query={query} values={statesOf(found?.state)} />
      <FacetList name="task" title="Task" query={query} values={found?.task ?? null} />
      <FacetList name="error" title="Error" query={query} values={found?.error ?? null} />
      <Since query={query} />
    </details>
  );
}

/** `count` is null until it is known. */
type Value = { value: string | null; count: number | null; more: boolean };
type Counts = Record<Facet, Value[]>;

async function readAll(query: URLSearchParams, signal: AbortSignal): Promise<Counts> {
  const names: Facet[] = ["state", "task", "error"];
  const found = await Promise.all(names.map((name) => read(query, name, signal)));
  return Object.fromEntries(names.map((name, index) => [name, found[index]])) as Counts;
}

async function read(query: URLSearchParams, name: Facet, signal: AbortSignal): Promise<Value[]> {
  const others = new URLSearchParams(query);
  others.delete(name);
  if (name === "error" && !others.has("state")) others.set("state", "failed");
  const filter = filterOf(others, now.peek());
  const { groups, more }: Count = await ask("GET /runs/count", { query: { ...filter, group_by: name }, signal });
  return (groups ?? []).map((group) => ({ ...group, more }));
}

/** All states in their usual order, also those that no run has: they can be chosen before they are counted. */
function statesOf(values: Value[] | undefined): Value[] {
  return STATES.map((state) => values?.find((each) => each.value === state) ?? { value: state, count: values ? 0 : null, more: false });
}

interface Props {
  name: Facet;
  title: string;
  query: URLSearchParams;
  values: Value[] | null;
}

function FacetList({ name, title, query, values }: Props) {
  const chosen = query.getAll(name);
  const shown = (values ?? []).filter((each) => each.value !== null && (each.count || name === "state"));
  if (shown.length === 0) return null;
  return (
    <section>
      <h2>{title}</h2>
      <ul>
        {shown.slice(0, MOST).map((each) => (
          <li key={each.value}>
            <button
              type="button"
              class="quiet"
              aria-pressed={chosen.includes(each.value ?? "")}
              onClick={() => toggle(query, name, each.value ?? "")}
            >
              <span class="name" title={each.value ?? ""}>{name === "state" ? <StateMark state={each.value ?? ""} /> : name === "error" ? lastName(each.value ?? "") : each.value}</span>
              <span class="dim">{each.count === null ? "" : count(each.count, each.more)}</span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function toggle(query: URLSearchParams, name: Facet, value: string): void {
  const chosen = query.getAll(name);
  const next = new URLSearchParams(query);
  next.delete(name);
  if (name === "error") {
    if (!chosen.includes(value)) next.set(name, value);
  } else {
    const values = chosen.includes(value) ? chosen.filter((each) => each !== value) : [...chosen, value];
    values.forEach((each) => next.append(name, each));
  }
  goTo(next);
}

function goTo(query: URLSearchParams): void {
  const text = query.toString();
  go(`${place.peek().path}${text ? `?${text}` : ""}`);
}

const SPANS: [string, string][] = [["", "all"], ["15m", "15 min"], ["1h", "1 h"], ["1d", "1 d"], ["7d", "7 d"]];

function Since({ query }: { query: URLSearchParams }) {
  const chosen = query.get("since") ?? "";
  return (
    <section>
      <h2>Made since</h2>
      <div class="spans">
        {SPANS.map(([value, name]) => (
          <button
            key={value}
            type="button"
            class="small"
            aria-pressed={chosen === value}
            onClick={() => {
              const next = new URLSearchParams(query);
              if (value) next.set("since", value);
              else next.delete("since");
              goTo(next);
            }}
          >
            {name}
          </button>
        ))}
      </div>
    </section>
  );
}
