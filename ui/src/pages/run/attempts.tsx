import type { Run, RunError } from "../../api/types";
import { now } from "../../app/clock";
import { span } from "../../app/format";
import { lastName, wordOf } from "../../parts/state";
import { traceAddress } from "../../app/preferences";
import { CopyButton } from "../../parts/copy";
import { Time } from "../../parts/time";

interface Part {
  kind: string;
  name: string;
  from: number;
  to: number;
  title: string;
}

/** Return the waits and the attempts of a run, one after the other. */
function partsOf(run: Run, nowMs: number): Part[] {
  const parts: Part[] = [];
  let at = Date.parse(run.created_at);
  const wait = (until: number, name: string) => {
    if (until > at) parts.push({ kind: "wait", name, from: at, to: until, title: `${name} ${span((until - at) / 1000)}` });
    at = Math.max(at, until);
  };
  const firstClaim = run.attempts[0]?.claimed_at ?? run.claimed_at;
  const due = Date.parse(run.due_at);
  if (run.attempts.length === 0 && due > at) wait(Math.min(due, firstClaim ? Date.parse(firstClaim) : due), "not yet due");
  for (const attempt of run.attempts) {
    const from = Date.parse(attempt.claimed_at);
    const to = Date.parse(attempt.ended_at);
    wait(from, "waited");
    const name = wordOf(attempt.outcome);
    parts.push({ kind: attempt.outcome, name, from, to, title: `claim ${attempt.fence}: ${name} after ${span((to - from) / 1000)}` });
    at = Math.max(at, to);
  }
  if (run.state === "running" && run.claimed_at) {
    const from = Date.parse(run.claimed_at);
    wait(from, "waited");
    parts.push({ kind: "running", name: "running", from, to: Math.max(from, nowMs), title: `runs since ${span((nowMs - from) / 1000)}` });
  } else if (!run.finished_at) wait(Math.max(nowMs, at), "waits");
  else wait(Date.parse(run.finished_at), "waited");
  return parts;
}

/** Attempts, with the waits between them, drawn to scale; the list below says the same in words. */
export function Attempts({ run }: { run: Run }) {
  const parts = partsOf(run, now.value);
  const first = parts[0]?.from ?? 0;
  const whole = Math.max(1, (parts.at(-1)?.to ?? 1) - first);
  return (
    <section class="attempts">
      <h2>Attempts</h2>
      <div class="scale" aria-hidden="true">
        {parts.map((part) => (
          <span
            key={`${part.from} ${part.kind}`}
            data-kind={part.kind}
            title={part.title}
            style={{ flexGrow: String((part.to - part.from) / whole), minWidth: part.kind === "wait" ? "0" : "4px" }}
          >
            <i>
              {part.name} {span((part.to - part.from) / 1000)}
            </i>
          </span>
        ))}
      </div>
      <ol>
        {run.attempts.map((attempt, index) => (
          <li key={attempt.fence}>
            <span class="outcome" data-kind={attempt.outcome}>
              {wordOf(attempt.outcome)}
            </span>
            <span>
              <Time at={attempt.claimed_at} /> for {span((Date.parse(attempt.ended_at) - Date.parse(attempt.claimed_at)) / 1000)}
            </span>
            <span class="dim mono">{attempt.worker}</span>
            {attempt.error && <ErrorOf error={attempt.error} before={run.attempts[index - 1]?.error ?? null} />}
            {attempt.trace && <TraceLink trace={attempt.trace} />}
            {attempt.warnings.map((warning) => (
              <span key={warning} class="warning">
                {warning}
              </span>
            ))}
          </li>
        ))}
        {run.state === "running" && run.claimed_at && (
          <li>
            <span class="outcome" data-kind="running">
              running
            </span>
            <span>
              since <Time at={run.claimed_at} />
            </span>
            <span class="dim mono">{run.worker}</span>
          </li>
        )}
        {run.attempts.length === 0 && run.state !== "running" && <li class="dim">No worker has claimed this run.</li>}
      </ol>
    </section>
  );
}

/** The error of an attempt; one that repeats the attempt before is said once. */
function ErrorOf({ error, before }: { error: RunError; before: RunError | null }) {
  if (before && before.type === error.type && before.message === error.message) return <span class="dim">the same error</span>;
  return (
    <span class="bad">
      {lastName(error.type)}: {error.message}
    </span>
  );
}

/** The trace of an attempt, elsewhere: where, the page Me keeps. Without an address, its id can be copied. */
function TraceLink({ trace }: { trace: string }) {
  const id = trace.split("-")[1] ?? trace;
  const address = traceAddress.value.replaceAll("{trace}", encodeURIComponent(id));
  return /^https?:\/\//.test(address) ? (
    <a href={address} target="_blank" rel="noreferrer">
      Trace ↗
    </a>
  ) : (
    <CopyButton text={id} label="Copy the trace id" />
  );
}
