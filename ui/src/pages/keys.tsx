import { useSignal } from "@preact/signals";
import { ask } from "../api/client";
import { useResource } from "../api/resource";
import type { DecisionCount, GetTasksNameKeysAnswerItems, Mark, Run } from "../api/types";
import { now } from "../app/clock";
import { count, counted } from "../app/format";
import { readNames, taskNames } from "../app/names";
import { hrefOf, place, search } from "../app/router";
import { may } from "../app/session";
import { act } from "../parts/act";
import { Empty, Show } from "../parts/empty";
import { Filters } from "../parts/filters";
import { KeyState } from "../parts/keystate";
import { RunLink, TaskLink, WhyLink } from "../parts/link";
import { NoteDialog } from "../parts/note";
import { Head } from "../parts/page";
import { StateMark, wordOf } from "../parts/state";
import { Table } from "../parts/table";
import { Ago } from "../parts/time";

/** One user's, device's or file's work over all tasks: what waits, what is remembered, what was refused and why. */
export default function KeysPage() {
  const query = place.value.query;
  const [key, task] = [query.get("key"), query.get("task")];
  const marks = useResource(
    `keys ${search.value}`,
    async (signal) => {
      void readNames();
      const about = { key, task };
      const [found, decisions, runs] = await Promise.all([
        ask("GET /marks", { query: { ...about, limit: 500 }, signal }),
        key === null ? null : ask("GET /decisions", { query: { ...about, limit: 100 }, signal }),
        key === null ? null : ask("GET /runs", { query: { key, state: ["queued", "running", "paused"], ...(task ? { task: [task] } : {}), limit: 50 }, signal }),
      ]);
      const states = key === null ? [] : await readStates(key, found.items, signal);
      return { marks: found.items, more: found.more, states, decisions: decisions?.items ?? [], runs: runs?.items ?? [] };
    },
    ["runs", "decisions"],
  );
  return (
    <>
      <Head title={key === null ? "Keys" : `Key ${key}`} about={key === null ? "What a run is about: a user, a device, a file. Ask for one key to see its work over all tasks." : "Its work over all tasks: what waits, what is remembered, what was refused."}>
        {key !== null && (
          <a class="button small" href={hrefOf("/runs", { key })}>
            All its runs
          </a>
        )}
      </Head>
      <Filters fields={[{ name: "key", label: "Key", placeholder: "ada" }, { name: "task", label: "Task", values: taskNames.value }]} />
      <Show of={marks}>
        {(found) => (
          <>
            <Marks marks={found.marks} more={found.more} states={found.states} of={key} reload={marks.reload} />
            {key !== null && <Waiting runs={found.runs} reload={marks.reload} />}
            {key !== null && <Refused rows={found.decisions} />}
          </>
        )}
      </Show>
    </>
  );
}

type KeyRow = GetTasksNameKeysAnswerItems & { task: string };
const TASKS = 12;

/** Return whether the breaker of the key is open, and until when it rests, for each task that knows the key. */
async function readStates(key: string, marks: readonly Mark[], signal: AbortSignal): Promise<KeyRow[]> {
  const tasks = [...new Set(marks.map((mark) => mark.task))].slice(0, TASKS);
  const found = await Promise.all(
    tasks.map((name) => ask("GET /tasks/{name}/keys", { path: { name }, query: { q: key }, signal }).then((answer) => answer.items.map((item) => ({ ...item, task: name })), () => [])),
  );
  return found.flat().filter((item) => item.key === key);
}

function Waiting({ runs, reload }: { runs: readonly Run[]; reload: () => void }) {
  async function startNow(run: Run): Promise<void> {
    await act("PATCH /runs/{id}", { path: { id: run.id }, body: { due_at: new Date(now.peek()).toISOString() } }, "Due now");
    reload();
  }
  return (
    <section class="part">
      <h2>Under way</h2>
      {runs.length === 0 ? (
        <p class="dim">Nothing waits or runs for this key.</p>
      ) : (
        <Table
          label="Runs under way"
          cards
          rows={runs}
          keyOf={(run) => run.id}
          columns={[
            { name: "task", cell: (run) => <TaskLink name={run.task} /> },
            { name: "state", cell: (run) => <StateMark state={run.state} /> },
            { name: "due", cell: (run) => <Ago at={run.due_at} /> },
            { name: "touches", right: true, extra: true, cell: (run) => count(run.touches) },
            { name: "run", wide: true, cell: (run) => <RunLink id={run.id} /> },
            {
              name: "do",
              cell: (run) =>
                may("operate") && run.state === "queued" && Date.parse(run.due_at) > now.value && (
                  <button type="button" class="small" aria-label={`Run now ${run.task}`} onClick={() => void startNow(run)}>
                    Run now
                  </button>
                ),
            },
          ]}
        />
      )}
    </section>
  );
}

function Refused({ rows }: { rows: readonly DecisionCount[] }) {
  if (rows.length === 0) return null;
  return (
    <section class="part">
      <h2>Decisions</h2>
      <Table
        label="Decisions about this key"
        cards
        rows={rows}
        keyOf={(row) => `${row.task} ${row.reason}`}
        columns={[
          { name: "reason", cell: (row) => wordOf(row.reason) },
          { name: "task", cell: (row) => <TaskLink name={row.task} /> },
          { name: "times", right: true, cell: (row) => count(row.count) },
          { name: "last", cell: (row) => <Ago at={row.last_at} /> },
          { name: "note", wide: true, cell: (row) => row.note ?? "" },
        ]}
      />
    </section>
  );
}

function Marks({ marks, more, states, of, reload }: { marks: readonly Mark[]; more: boolean; states: readonly KeyRow[]; of: string | null; reload: () => void }) {
  const forgetting = useSignal<Mark | null>(null);
  if (marks.length === 0) {
    return (
      <Empty title={of === null ? "No key is remembered yet" : "Nothing is remembered of this key"}>
        <p>
          Keys come from tasks with <code>key=</code> or <code>activity=</code>; their last success and failures are remembered here.
        </p>
      </Empty>
    );
  }
  return (
    <section class="part">
      <h2>{of === null ? counted(marks.length, "key", more) : "Remembered"}</h2>
      <Table
        label="Keys"
        cards
        rows={marks}
        keyOf={(mark) => `${mark.task} ${mark.key}`}
        columns={[
          ...(of === null ? [{ name: "key", cell: (mark: Mark) => <a href={hrefOf("/keys", { key: mark.key })}>{mark.key}</a> }] : []),
          { name: "task", cell: (mark) => <TaskLink name={mark.task} /> },
          ...(of === null ? [] : [{ name: "now", cell: (mark: Mark) => <KeyState of={states.find((each) => each.task === mark.task)} /> }]),
          { name: "last success", cell: (mark) => <Ago at={mark.succeeded_at} /> },
          { name: "last end", extra: true, cell: (mark) => <Ago at={mark.finished_at} /> },
          { name: "failures in a row", right: true, cell: (mark) => (mark.failures ? <span class="bad">{count(mark.failures)}</span> : <span class="dim">0</span>) },
          { name: "", wide: true, right: true, cell: (mark) => <WhyLink subject={mark.task} key_={mark.key} /> },
          {
            name: "do",
            cell: (mark) =>
              may("operate") && (
                <button type="button" class="small" aria-label={`${mark.failures ? "Reset …" : "Forget …"} ${mark.key} of ${mark.task}`} onClick={() => (forgetting.value = mark)}>
                  {mark.failures ? "Reset …" : "Forget …"}
                </button>
              ),
          },
        ]}
      />
      {forgetting.value && <Forget mark={forgetting.value} reload={reload} onClose={() => (forgetting.value = null)} />}
    </section>
  );
}

/** Asks before a mark goes: with it go an open breaker, a rest between two runs, and that something is done. */
function Forget({ mark, reload, onClose }: { mark: Mark; reload: () => void; onClose: () => void }) {
  async function forget(note: string): Promise<boolean> {
    const reply = await act("DELETE /marks/{task}/{key}", { path: { task: mark.task, key: mark.key }, query: { note: note || null } }, `${mark.task} has forgotten ${mark.key}`);
    if (reply) reload();
    return reply !== null;
  }
  const about = mark.failures
    ? `After this, ${mark.task} has no failures of ${mark.key} any more: an open breaker closes, and new runs are taken.`
    : `After this, ${mark.task} does not know any more that ${mark.key} is done: it can be done again.`;
  return <NoteDialog title={`Forget ${mark.key} of ${mark.task}`} verb="Forget it" danger about={about} onClose={onClose} onDone={forget} />;
}
