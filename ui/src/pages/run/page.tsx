import { useSignal } from "@preact/signals";
import { ask, send } from "../../api/client";
import { useResource } from "../../api/resource";
import { rawField } from "../../api/raw";
import type { Run } from "../../api/types";
import { hrefOf } from "../../app/router";
import { Show } from "../../parts/empty";
import { Json } from "../../parts/json";
import { TaskLink } from "../../parts/link";
import { Head } from "../../parts/page";
import { capital, Sentence } from "../../parts/sentence";
import { StateMark } from "../../parts/state";
import { Ago } from "../../parts/time";
import "../../styles/run.css";
import { Answer } from "../why/answer";
import type { PageProps } from "../registry";
import { RunActions } from "./actions";
import { Attempts } from "./attempts";
import { CopyAs } from "./copyas";
import { Facts } from "./facts";
import { LineageView } from "./lineage";
import { LogTail } from "./log";
import { StatePath } from "./path";
import { Trace } from "./trace";

export default function RunPage({ params }: PageProps) {
  const id = params["id"] ?? "";
  return <OneRun key={id} id={id} />;
}

async function read(id: string, signal: AbortSignal) {
  const path = { id };
  const [reply, why] = await Promise.all([
    send("GET /runs/{id}", { path, signal }),
    ask("GET /runs/{id}/why", { path, signal }),
  ]);
  return {
    run: reply.data,
    etag: reply.etag,
    args: rawField(reply.text, "args"),
    result: rawField(reply.text, "result"),
    saved: rawField(reply.text, "saved"),
    why,
  };
}

function OneRun({ id }: { id: string }) {
  const found = useResource(id, (signal) => read(id, signal), ["runs"]);
  const facts = useSignal(false);
  return (
    <Show of={found} title="Run">
      {({ run, etag, args, result, saved, why }) => (
        <article class="run">
          <Head
            title={
              <>
                {run.task} <StateMark state={run.state} />
              </>
            }
            about={
              <>
                <span class="mono">{run.id}</span> · made <Ago at={run.created_at} />
                {run.key && <> · key <a href={hrefOf("/keys", { key: run.key })}>{run.key}</a></>}
              </>
            }
          >
            <RunActions run={run} args={args} etag={etag} reload={found.reload} />
          </Head>
          <p class="answerline" data-state={run.state} aria-live="polite">
            <Sentence text={capital(why.answer, run.task)} />{" "}
            <button type="button" class="small" aria-expanded={facts.value} onClick={() => (facts.value = !facts.value)}>
              {facts.value ? "Hide the facts" : "Why?"}
            </button>
          </p>
          {facts.value && <Answer why={why} />}
          <StatePath run={run} />
          <Progress run={run} />
          <Attempts run={run} />
          {run.error && <Trace error={run.error} />}
          <LogTail run={run} />
          <div class="columns">
            <section>
              <h2>Arguments</h2>
              {args === null || args === "null" ? <Hidden /> : <Json text={args} label="Arguments" />}
            </section>
            <section>
              <h2>Result</h2>
              {run.state === "succeeded" && result !== null ? (
                <Json text={result} label="Result" />
              ) : (
                <p class="dim">{run.state === "succeeded" ? "Not shown to this role." : "There is none: the run has not succeeded."}</p>
              )}
              {saved !== null && saved !== "null" && (
                <>
                  <h2>Saved by the handler</h2>
                  <Json text={saved} label="Saved" />
                </>
              )}
            </section>
          </div>
          <LineageView run={run} />
          <Facts run={run} />
          <CopyAs run={run} args={args} />
          <p class="dim">
            <TaskLink name={run.task} /> · <a href={hrefOf("/runs", { task: run.task })}>all runs of this task</a>
          </p>
        </article>
      )}
    </Show>
  );
}

function Hidden() {
  return <p class="dim">There are none, or this role may not read them (the right is read:payload).</p>;
}

function Progress({ run }: { run: Run }) {
  if (run.state !== "running" || !run.progress) return null;
  return (
    <p class="row">
      <progress max={1} value={run.progress.share} aria-label="Progress" /> {Math.round(run.progress.share * 100)} %{" "}
      {run.progress.message}
    </p>
  );
}
