import { useSignal } from "@preact/signals";
import { ask } from "../../api/client";
import { useResource } from "../../api/resource";
import type { Flow, FlowPeriodsSteps, ScheduleRow } from "../../api/types";
import { counted } from "../../app/format";
import { hrefOf, place, setQuery } from "../../app/router";
import { may } from "../../app/session";
import { act } from "../../parts/act";
import { Empty, Show } from "../../parts/empty";
import { holderOf } from "../../parts/holder";
import { RunLink, TaskLink, WhyLink } from "../../parts/link";
import { Head } from "../../parts/page";
import { markOf, StateMark, wordOf } from "../../parts/state";
import { Table } from "../../parts/table";
import { Ago, Time } from "../../parts/time";
import type { PageProps } from "../registry";
import { Graph, MOST } from "./graph";
import { RerunDialog } from "./rerun";
import { ResetDialog } from "./reset";
import "../../styles/flow.css";

const PERIODS = 14;
/** The schedule that looks whether a step, or the flow, has succeeded in time has the name of that after this. */
const EXPECT = "expect:";

export default function FlowPage({ params }: PageProps) {
  const name = params["name"] ?? "";
  const chosen = place.value.query.get("period");
  const flow = useResource(
    `${name} ${chosen}`,
    (signal) =>
      chosen === null
        ? ask("GET /flows/{name}", { path: { name }, signal })
        : ask("GET /flows/{name}/periods/{period}", { path: { name, period: chosen }, signal }),
    ["runs", "flows"],
  );
  const grid = useResource(name, (signal) => ask("GET /flows/{name}/periods", { path: { name }, query: { last: PERIODS }, signal }), ["runs", "flows"]);
  const expected = useResource(name, (signal) => ask("GET /schedules", { query: { q: `${EXPECT}${name}`, limit: 200 }, signal }), ["schedules"]);
  const resetting = useSignal(false);
  const of = (what: string) => expected.data.value?.items.find((row) => row.id === EXPECT + what);
  const reload = () => {
    flow.reload();
    grid.reload();
  };
  return (
    <Show of={flow} title={name}>
      {(found) => (
        <>
          <Head title={found.flow} about={aboutOf(found)}>
            {may("operate") && (
              <>
                <button type="button" class={found.done ? undefined : "primary"} onClick={() => void start(found, reload)}>
                  Start {found.period}
                </button>
                <button type="button" class="danger" onClick={() => (resetting.value = true)}>
                  Reset …
                </button>
              </>
            )}
            <WhyLink subject={holderOf(found)} />
          </Head>
          {resetting.value && <ResetDialog flow={found} onClose={() => (resetting.value = false)} done={reload} />}
          <Lateness of={of(found.flow)} />
          <Period steps={stepsOf(found)} expected={(step) => of(`${found.flow}/${step}`)} reload={reload} />
          <h2 class="part">Periods</h2>
          <Show of={grid}>{(all) => <Grid periods={known(all.items)} shown={found.period} />}</Show>
        </>
      )}
    </Show>
  );
}

function aboutOf(found: Flow) {
  const state = found.complete ? "complete" : [
    [found.failed, "failed"], [found.blocked, "blocked"], [found.running, "running"], [found.waiting, "waiting"],
  ].filter(([many]) => many).map(([many, word]) => `${many} ${word}`).join(", ") || "not begun";
  return (
    <>
      Period {found.period}: {found.done} of {counted(found.steps, "step")} done, {state}.
      {found.next_recheck && <> Looked at again <Time at={found.next_recheck} own={found.zone ?? "UTC"} />.</>}
    </>
  );
}

function stepsOf(found: Flow): readonly FlowPeriodsSteps[] {
  return found.periods?.find((each) => each.period === found.period)?.steps ?? found.periods?.[0]?.steps ?? [];
}

/** When the whole flow should have succeeded, and that it is late. */
function Lateness({ of }: { of: ScheduleRow | undefined }) {
  if (!of) return null;
  return (
    <p class={of.last === "late" ? "banner" : "dim part"}>
      {of.last === "late" ? "It is late: " : "It is "}expected {of.words}.
    </p>
  );
}

/** When a step should have succeeded. A deadline that has passed says so until the step is done. */
function Expected({ of, done }: { of: ScheduleRow | undefined; done: boolean }) {
  if (!of) return <span class="dim">–</span>;
  if (of.last === "late" && !done) return <a class="bad" href={hrefOf(`/schedules/${encodeURIComponent(of.id)}`)}>late: {of.words}</a>;
  return <a href={hrefOf(`/schedules/${encodeURIComponent(of.id)}`)}>{of.words}</a>;
}

interface PeriodProps {
  steps: readonly FlowPeriodsSteps[];
  expected: (step: string) => ScheduleRow | undefined;
  reload: () => void;
}

function Period({ steps, expected, reload }: PeriodProps) {
  const rerun = useSignal<FlowPeriodsSteps | null>(null);
  if (steps.length === 0) return <Empty title="Nothing of this period is known" />;
  return (
    <>
      {steps.length <= MOST && <Graph steps={steps} />}
      <h2 class="part">Steps</h2>
      <Table
        label="Steps"
        cards
        rows={steps}
        keyOf={(step) => step.step}
        columns={[
          { name: "step", cell: (step) => step.step },
          { name: "state", cell: (step) => <StateMark state={step.state} /> },
          { name: "since", cell: (step) => <Ago at={step.since} /> },
          ...(steps.some((step) => expected(step.step))
            ? [{ name: "expected", cell: (step: FlowPeriodsSteps) => <Expected of={expected(step.step)} done={step.state === "done"} /> }]
            : []),
          { name: "task", extra: true, cell: (step) => <TaskLink name={step.task} /> },
          { name: "run", extra: true, cell: (step) => (step.run ? <RunLink id={step.run} /> : "–") },
          { name: "blocked by, or error", wide: true, cell: (step) => step.error ?? step.blocked_by.join(", ") },
          {
            name: "",
            cell: (step) =>
              may("operate") && (
                <button type="button" class="small" onClick={() => (rerun.value = step)}>
                  Run again
                </button>
              ),
          },
        ]}
      />
      {rerun.value && <RerunDialog step={rerun.value} onClose={() => (rerun.value = null)} done={reload} />}
    </>
  );
}

/** Return the periods from the first one on of which something is known. */
function known<T extends { steps: readonly FlowPeriodsSteps[] }>(periods: readonly T[]): readonly T[] {
  const first = periods.findIndex((each) => each.steps.some((step) => step.state !== "absent"));
  return first < 0 ? [] : periods.slice(first);
}

function Grid({ periods, shown }: { periods: readonly { period: string; done: boolean; steps: readonly FlowPeriodsSteps[] }[]; shown: string }) {
  const names = [...new Set(periods.flatMap((each) => each.steps.map((step) => step.step)))];
  if (periods.length === 0) return <p class="dim">No period has begun yet.</p>;
  return (
    <div class="tablebox" role="region" aria-label="Periods and steps" tabIndex={0}>
      <table class="grid">
        <thead>
          <tr>
            <th scope="col">period</th>
            {names.map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {[...periods].reverse().map((each) => (
            <tr key={each.period} aria-current={each.period === shown || undefined}>
              <th scope="row">
                <button type="button" class="link" onClick={() => setQuery({ period: each.period }, false)}>
                  {each.period}
                </button>
              </th>
              {names.map((name) => {
                const step = each.steps.find((one) => one.step === name);
                return <td key={name}>{step ? <Cell step={step} /> : ""}</td>;
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Cell({ step }: { step: FlowPeriodsSteps }) {
  const label = `${step.step}, ${step.period}: ${wordOf(step.state)}`;
  const mark = (
    <span class="state" data-state={step.state}>
      {markOf(step.state)}
    </span>
  );
  return step.run ? (
    <a href={hrefOf(`/runs/${encodeURIComponent(step.run)}`)} aria-label={label} title={label}>
      {mark}
    </a>
  ) : (
    <span title={label} role="img" aria-label={label}>
      {mark}
    </span>
  );
}

async function start(found: Flow, reload: () => void): Promise<void> {
  const done = await act("POST /flows/{name}/start", { path: { name: found.flow }, body: { period: found.period } }, `Started ${found.flow} of ${found.period}`);
  if (done) reload();
}
