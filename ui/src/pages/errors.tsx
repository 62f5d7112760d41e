import type { ComponentChildren } from "preact";
import { useSignal } from "@preact/signals";
import { ask } from "../api/client";
import { useResource } from "../api/resource";
import type { ErrorGroup } from "../api/types";
import { now } from "../app/clock";
import { count, counted, secondsOf } from "../app/format";
import { hrefOf, place, setQuery } from "../app/router";
import { may } from "../app/session";
import { isWorthARetry } from "../parts/again";
import { Views } from "../parts/bar";
import { CopyButton } from "../parts/copy";
import { Empty, Show } from "../parts/empty";
import { RunLink, TaskLink, WhyLink } from "../parts/link";
import { OperationDialog, type Asked } from "../parts/operation";
import { Head } from "../parts/page";
import { Exports } from "../parts/exports";
import { Spark } from "../parts/spark";
import { useStill } from "../parts/still";
import { lastName } from "../parts/state";
import { Ago, Time } from "../parts/time";
import "../styles/errors.css";

const SPANS = [["1h", "1 h"], ["1d", "1 d"], ["7d", "7 d"]] as const;

/** Failed runs by what went wrong; those that came with the last start of the workers are marked. */
export default function ErrorsPage() {
  const asked = useSignal<Asked | null>(null);
  const since = SPANS.find(([value]) => value === place.value.query.get("since"))?.[0] ?? "1d";
  const groups = useResource(
    `errors ${since}`,
    async (signal) => {
      const from = new Date(now.peek() - (secondsOf(since) ?? 0) * 1000).toISOString();
      const [found, workers] = await Promise.all([
        ask("GET /errors", { query: { limit: 200, since: from }, signal }),
        ask("GET /workers", { signal }),
      ]);
      const begun = workers.items.filter((worker) => worker.standing !== "stopped").map((worker) => worker.began_at ?? "");
      return { groups: found.items, from, backTo: found.searched_back_to ?? null, deploy: begun.sort().at(-1) || null };
    },
    ["runs"],
  );
  const data = groups.data.value;
  return (
    <>
      <Head title="Errors" about={<About groups={data?.groups ?? []} deploy={data?.deploy ?? null} />}>
        <Views label="Since" of={SPANS} chosen={since} onChoose={(value) => setQuery({ since: value === "1d" ? null : value })} />
        <Exports name="errors" rows={data?.groups ?? []} />
      </Head>
      <Show of={groups}>
        {(found) =>
          found.groups.length === 0 ? (
            <Empty title="No run has failed in this time">
              <p>Runs that fail for good appear here, grouped by task, type and message. A failure that is retried does not.</p>
            </Empty>
          ) : (
            <>
              <Groups groups={found.groups}>
                {(group) => (
                  <Group key={keyOf(group)} group={group} fresh={isNew(group, found.deploy) && found.groups.some((each) => !isNew(each, found.deploy))} from={found.from} since={since} onAsk={(each) => (asked.value = each)} />
                )}
              </Groups>
              {found.backTo && (
                <p class="dim part">
                  Searched back to <Time at={found.backTo} />: there are more.
                </p>
              )}
            </>
          )
        }
      </Show>
      {asked.value && <OperationDialog asked={asked.value} onClose={() => { asked.value = null; groups.reload(); }} />}
    </>
  );
}

/** The groups, which keep their places while somebody is among them. */
function Groups({ groups, children }: { groups: readonly ErrorGroup[]; children: (group: ErrorGroup) => ComponentChildren }) {
  const still = useStill(groups, keyOf);
  return (
    <ol class="errors" {...still.hold}>
      {still.rows.map(children)}
    </ol>
  );
}

function keyOf(group: ErrorGroup): string {
  return `${group.task} ${group.type} ${group.message}`;
}

/** Did it fail for the first time after the last worker began? */
function isNew(group: ErrorGroup, deploy: string | null): boolean {
  return deploy !== null && group.first > deploy;
}

function About({ groups, deploy }: { groups: readonly ErrorGroup[]; deploy: string | null }) {
  const fresh = groups.filter((group) => isNew(group, deploy)).length;
  return (
    <>
      Failed runs, grouped by task, type and message (# is any number).
      {deploy && (
        <>
          {" "}
          {fresh ? counted(fresh, "group") : "None"} new since the last worker began, at <Time at={deploy} seconds={false} />.
        </>
      )}
    </>
  );
}

interface Props {
  group: ErrorGroup;
  fresh: boolean;
  from: string;
  since: string;
  onAsk: (asked: Asked) => void;
}

function Group({ group, fresh, from, since, onAsk }: Props) {
  const runs = hrefOf("/runs", { task: group.task, state: "failed", error: group.type, since });
  const filter = { task: [group.task], state: ["failed" as const], error: group.type, since: from, by: "finished" as const };
  return (
    <li data-row>
      <div class="count">
        <a href={runs} aria-label={`${counted(group.count, "run")} of ${group.task} with ${group.type}`}>
          {count(group.count)}
        </a>
        <Spark values={group.spark} kind="bars" tone="bad" label={`${counted(group.count, "run")}, over time`} width={90} />
      </div>
      <div class="what">
        <p>
          <strong title={group.type}>{lastName(group.type)}</strong> in <TaskLink name={group.task} /> {fresh && <span class="tag new">new since the deploy</span>}
        </p>
        <p class="message">{group.message || <span class="dim">without a message</span>}</p>
        <p class="dim">
          last <Ago at={group.last} />, first <Ago at={group.first} />
          {group.runs[0] && (
            <>
              , such as <RunLink id={group.runs[0]} />
            </>
          )}
        </p>
      </div>
      <div class="row do">
        <Again group={group} onAsk={() => onAsk({ action: "retry", filter })} />
        <CopyButton text={issueOf(group)} label="Copy for an issue" />
        <WhyLink subject={group.runs[0] ?? group.task} />
      </div>
    </li>
  );
}

/** The way to a retry: of all of them, or of one after a look at it. */
function Again({ group, onAsk }: { group: ErrorGroup; onAsk: () => void }) {
  const [run] = group.runs;
  if (run && !isWorthARetry(group)) {
    return (
      <a class="button small" href={hrefOf(`/runs/${encodeURIComponent(run)}`)}>
        Look at the run
      </a>
    );
  }
  if (!may("operate")) return null;
  return (
    <button type="button" class="small" onClick={onAsk}>
      Retry them …
    </button>
  );
}

function issueOf(group: ErrorGroup): string {
  return [
    `## ${group.task}: ${lastName(group.type)}`,
    "",
    `    ${group.type}: ${group.message}`,
    "",
    `${counted(group.count, "run")} from ${group.first} to ${group.last}`,
    ...group.runs.map((run) => `- ${window.location.origin}${hrefOf(`/runs/${encodeURIComponent(run)}`)}`),
  ].join("\n");
}
