import type { Why, WhyFacts } from "../../api/types";
import { hrefOf } from "../../app/router";
import { may } from "../../app/session";
import { act } from "../../parts/act";
import { CopyButton } from "../../parts/copy";

/** One thing that can be done: a sentence, and where or how. */
interface Cure {
  text: string;
  links?: [name: string, path: string, query?: Record<string, string>][];
  command?: string;
  act?: { name: string; run: () => Promise<unknown> };
}

/** What can be done about an answer: by a button where that is safe, else by the page or the command that does it. */
export function Cures({ of: why, reload }: { of: Why; reload: () => void }) {
  const cures = curesOf(why);
  if (cures.length === 0) return null;
  return (
    <ul class="cures" aria-label="What to do">
      {cures.map((cure) => (
        <li key={cure.text}>
          <span>{cure.text}</span>
          <span class="row">
            {cure.act && may("operate") && (
              <button type="button" class="small primary" onClick={() => void cure.act?.run().then(reload)}>
                {cure.act.name}
              </button>
            )}
            {cure.links?.map(([name, path, query]) => (
              <a key={name} class="button small" href={hrefOf(path, query)}>
                {name}
              </a>
            ))}
            {cure.command && (
              <>
                <code>{cure.command}</code> <CopyButton text={cure.command} />
              </>
            )}
          </span>
        </li>
      ))}
    </ul>
  );
}

function curesOf(why: Why): Cure[] {
  const found = why.kind.startsWith("run of ") ? ofRun(why) : [];
  const [task = "", ...key] = why.kind === "task" ? why.subject.split(" ") : [why.kind.slice("run of ".length)];
  const facts = [...why.facts].sort((one, two) => Number(two.holds) - Number(one.holds)); // what holds the work comes first
  const others = facts.filter((fact) => fact.about !== "clock").flatMap((fact) => ofFact(fact, why, task, key.join(" ")));
  const clocks = found.length + others.length ? [] : facts.filter((fact) => fact.about === "clock"); // never what holds it
  const all = [...found, ...others, ...clocks.flatMap((fact) => ofFact(fact, why, task, ""))];
  return all.filter((cure, index) => all.findIndex((other) => other.text === cure.text) === index);
}

/** A run that has failed holds nothing back: what to do depends on how it failed. */
function ofRun({ answer, subject, kind }: Why): Cure[] {
  const task = ["Open the task", pathOf("tasks", kind.slice("run of ".length))] as [string, string];
  const run = ["Open the run", pathOf("runs", subject)] as [string, string];
  if (/: poison$/.test(answer)) return [{ text: "Every worker that took it went away: killed, out of memory, or crashed. Read their logs and its arguments before you retry it.", links: [run, ["Look at the workers", "/workers"]] }];
  if (/TimeoutError: took longer/.test(answer)) return [{ text: "Give the task a longer timeout (an override is in force at once), or make it faster. A thread that goes on keeps its seat until its worker is stopped.", links: [task, ["Look at the workers", "/workers"]] }];
  if (/arguments do not fit/.test(answer)) return [{ text: "The code takes other arguments now. Retry the run with edits, or give the new parameter a default.", links: [run] }];
  return /^it failed/.test(answer) ? [{ text: "Read the traceback, mend the cause, then retry.", links: [run, ["All of this task", "/runs", { task: kind.slice("run of ".length), state: "failed" }]] }] : [];
}

function ofFact({ about, text, holds }: WhyFacts, why: Why, task: string, key: string): Cure[] {
  const open = ["Open the task", pathOf("tasks", task)] as [string, string];
  if (about === "clock") return [{ text: "Set the clock of that host by NTP. Runs start by the store's clock, but what handlers read there is wrong.", links: [["Look at the workers", "/workers"]] }];
  const overlapping = about === "decided" && /^already_running for 'schedule:([^']+)'/.exec(text)?.[1];
  if (overlapping) {
    return [{ text: "Its runs take longer than its ticks are apart: let it fire less often, or choose another overlap.", links: [["Open the schedule", pathOf("schedules", overlapping)]] }];
  }
  if (!holds) return [];
  if (about === "task" && / is paused/.test(text)) return [{ text: "Let its runs start again, when the reason is gone.", act: { name: "Resume", run: () => act("POST /tasks/{name}/resume", { path: { name: task }, body: {} }, `${task} resumed`) }, links: [open] }];
  if (about === "key" && /breaker is open/.test(text)) return [{ text: "When the cause is gone, close the breaker: new runs are taken at once.", act: { name: "Close the breaker", run: () => act("DELETE /marks/{task}/{key}", { path: { task, key } }, "The breaker is closed") }, links: [["Open the key", "/keys", { key }]] }];
  if (about === "limit") return [{ text: "It goes on when one ends. Look at what runs, or let more run at once by an override.", links: [["See what runs", "/runs", { task, state: "running" }], open] }];
  if (about === "blocked") return [{ text: "Mend what has failed, then run that step again: the steps behind it follow.", links: [["Open the flow", pathOf("flows", /blocked by ([^/]+)\//.exec(text)?.[1] ?? why.subject)]] }];
  if (about === "seats") return [{ text: "Every seat is taken: look at what the workers do, or start another one.", links: [["Look at the workers", "/workers"]], command: "rota worker -A app" }];
  if (about === "workers" && !text.includes("`")) return [{ text: "Start a worker with the code of this task.", command: "rota worker -A app", links: [["Look at the workers", "/workers"]] }];
  if (about === "workers") return [{ text: "Start a worker that serves this queue.", links: [["Look at the workers", "/workers"]] }];
  return [];
}

function pathOf(kind: string, name: string): string {
  return `/${kind}/${encodeURIComponent(name)}`;
}
