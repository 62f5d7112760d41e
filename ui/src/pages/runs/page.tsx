import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { counted } from "../../app/format";
import { bind } from "../../app/keys";
import { place, search } from "../../app/router";
import { withoutColumns } from "../../app/preferences";
import { may } from "../../app/session";
import { namingView } from "../../app/views";
import { Empty, Loading, ProblemView } from "../../parts/empty";
import { Exports } from "../../parts/exports";
import { OperationDialog, type Asked } from "../../parts/operation";
import { Head } from "../../parts/page";
import { Time } from "../../parts/time";
import "../../styles/runs.css";
import { Actions } from "./actions";
import { Facets } from "./facets";
import { bindingsOf } from "./keys";
import { RunList } from "./list";
import { Selection } from "./selection";
import { RunTable } from "./table";

export default function RunsPage() {
  const again = useSignal(0);
  const key = `${search.value} ${again.value}`;
  return <Found key={key} onAgain={() => (again.value += 1)} />;
}

function Found({ onAgain }: { onAgain: () => void }) {
  const query = place.peek().query;
  const list = useMemo(() => new RunList(query), []);
  const selection = useMemo(() => new Selection(), []);
  const asked = useSignal<Asked | null>(null);
  const menu = useSignal(false);
  const empty = useComputed(() => list.rows.value.length === 0);
  useEffect(() => () => list.close(), []);
  useEffect(() => bind(bindingsOf(list, selection, menu)), []);

  const problem = list.problem.value;
  return (
    <>
      <Head title="Runs" about={<Tally list={list} />}>
        {list.fresh.value > 0 && (
          <button type="button" class="pill new" onClick={onAgain}>
            {counted(list.fresh.value, "new run")}: show
          </button>
        )}
        {may("operate") && !empty.value && (
          <button type="button" class="small" aria-expanded={menu.value} onClick={() => (menu.value = !menu.value)}>
            Act on all that match …
          </button>
        )}
        <Columns />
        <button type="button" class="small" title="Give this view a name (v)" onClick={() => (namingView.value = true)}>
          Save view …
        </button>
        <Exports name="runs" rows={list.rows.value} />
      </Head>
      <div class="withfacets">
        <Facets query={query} />
        <div>
          {problem && <ProblemView problem={problem} retry={() => void list.more()} />}
          {!empty.value && <RunTable list={list} selection={selection} />}
          {empty.value && !problem && (list.loading.value ? <Loading /> : <NoRuns filtered={query.size > 0} />)}
          {list.searchedBackTo.value && !list.ended.value && (
            <p class="dim">
              Searched back to <Time at={list.searchedBackTo.value} />.{" "}
              <button type="button" class="small" onClick={() => void list.more()}>
                Search further
              </button>
            </p>
          )}
        </div>
      </div>
      {may("operate") && <Actions list={list} selection={selection} menu={menu} onAsk={(each) => (asked.value = each)} />}
      {asked.value && (
        <OperationDialog
          asked={asked.value}
          onClose={() => {
            asked.value = null;
            selection.clear();
          }}
        />
      )}
    </>
  );
}

function Tally({ list }: { list: RunList }) {
  const read = list.rows.value.length;
  const words = list.ended.value ? counted(read, "run") : `The latest ${counted(read, "run")}; the rest come as you scroll`;
  const unknown = !read && (list.loading.value ? "…" : list.problem.value ? "It is not known which runs there are." : "");
  return <span role="status">{unknown || words}</span>;
}

const COLUMNS = ["key", "arguments", "took", "claims", "run"];

/** Which columns are shown. This browser keeps the choice. */
function Columns() {
  const without = withoutColumns.value.split(" ").filter(Boolean);
  const toggle = (name: string) => (withoutColumns.value = (without.includes(name) ? without.filter((each) => each !== name) : [...without, name]).join(" "));
  return (
    <details class="menu">
      <summary class="button small">Columns</summary>
      <div>
        {COLUMNS.map((name) => (
          <label key={name}>
            <input type="checkbox" checked={!without.includes(name)} onChange={() => toggle(name)} /> {name}
          </label>
        ))}
      </div>
    </details>
  );
}

function NoRuns({ filtered }: { filtered: boolean }) {
  return filtered ? (
    <Empty title="No run matches">
      <p>Take a word out of the search, or ask why: a task that was never submitted has no runs.</p>
    </Empty>
  ) : (
    <Empty title="No run yet" command="rota submit TASK --arg name=value">
      <p>Submit a task from code, over HTTP or with the command line; a schedule makes runs, too.</p>
    </Empty>
  );
}
