import { ask } from "../../api/client";
import { useResource } from "../../api/resource";
import type { GetTasksNameKeysAnswerItems, Task } from "../../api/types";
import { count, counted } from "../../app/format";
import { hrefOf } from "../../app/router";
import { KeyState } from "../../parts/keystate";
import { WhyLink } from "../../parts/link";
import { StateMark } from "../../parts/state";
import { Table } from "../../parts/table";
import { Ago } from "../../parts/time";

const MOST = 12;
type Key = GetTasksNameKeysAnswerItems;

/** The keys of the task, those in trouble first: what waits for each, whether it rests, how it ended last. */
export function Keys({ task }: { task: Task }) {
  const keys = useResource(task.task, (signal) => ask("GET /tasks/{name}/keys", { path: { name: task.task }, signal }), ["runs", "decisions"]);
  const found = keys.data.value;
  if (!found || found.items.length === 0) return null;
  const rows = [...found.items].sort((one, two) => weightOf(two) - weightOf(one)).slice(0, MOST);
  const paused = (key: Key) => task.paused_keys.includes(key.key);
  return (
    <section class="part">
      <h2>
        {counted(found.items.length, "key", found.more)}{" "}
        {found.items.length > MOST && (
          <a class="aside" href={hrefOf("/keys", { task: task.task })}>
            show all
          </a>
        )}
      </h2>
      <Table
        label="Keys"
        cards
        rows={rows}
        keyOf={(key) => key.key}
        columns={[
          { name: "key", cell: (key) => <a href={hrefOf("/keys", { key: key.key })}>{key.key}</a> },
          { name: "now", cell: (key) => (paused(key) ? <span class="odd">paused</span> : <KeyState of={key} />) },
          { name: "under way", cell: (key) => (key.run && key.state ? <a href={hrefOf(`/runs/${encodeURIComponent(key.run)}`)}><StateMark state={key.state} /></a> : <span class="dim">–</span>) },
          { name: "due", extra: true, cell: (key) => <Ago at={key.state === "queued" ? key.due_at : null} /> },
          { name: "last success", extra: true, cell: (key) => <Ago at={key.succeeded_at} /> },
          { name: "failures in a row", right: true, cell: (key) => (key.failures ? <span class="bad">{count(key.failures)}</span> : <span class="dim">0</span>) },
          { name: "", wide: true, right: true, cell: (key) => <WhyLink subject={task.task} key_={key.key} /> },
        ]}
      />
    </section>
  );
}

/** A key that is refused comes before one that failed, one that rests, and one for which something waits or runs. */
function weightOf(key: Key): number {
  return (key.breaker ? 8 : 0) + (key.failures ? 4 : 0) + (key.rests_until ? 2 : 0) + (key.run ? 1 : 0);
}
