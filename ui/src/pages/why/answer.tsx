import type { ComponentChildren } from "preact";
import type { Why } from "../../api/types";
import { RunLink, ScheduleLink, TaskLink } from "../../parts/link";
import { capital, Sentence } from "../../parts/sentence";
import { Ago, Time } from "../../parts/time";
import "../../styles/why.css";

/** The answer in one sentence, then all that was looked at; what holds the work back is marked. */
export function Answer({ why, cures, children }: { why: Why; cures?: ComponentChildren; children?: ComponentChildren }) {
  return (
    <section class="answer" aria-label="Answer">
      <p class="verdict" data-tone={why.held ? "held" : /\bfailed\b/.test(why.answer) ? "bad" : "good"} aria-live="polite">
        <Sentence text={capital(why.answer, why.subject)} />
      </p>
      <p class="dim">
        {why.kind} <Subject of={why} />
        {why.changes_at && (
          <>
            {" "}
            · changes by itself <Ago at={why.changes_at} />, at <Time at={why.changes_at} />
          </>
        )}
      </p>
      {cures}
      <dl class="facts">
        {why.facts.map((fact) => (
          <div key={fact.about + fact.text} data-holds={fact.holds}>
            <dt>
              <span class="holds" aria-hidden="true">
                {fact.holds ? "!" : "·"}
              </span>
              {fact.about}
            </dt>
            <dd>
              <Sentence text={fact.text} copies={false} />
              {fact.holds && <span class="tag">holds it back</span>}
            </dd>
          </div>
        ))}
      </dl>
      {children && <div class="row">{children}</div>}
    </section>
  );
}

/** What was asked about, as a link: there it can be changed. `task charge ada` is the key ada of the task charge. */
function Subject({ of: { kind, subject } }: { of: Why }) {
  if (kind === "task") return <TaskLink name={subject.split(" ")[0] ?? ""}>{subject}</TaskLink>;
  return kind === "schedule" ? <ScheduleLink id={subject} /> : <RunLink id={subject}>{subject}</RunLink>;
}

export function textOf(why: Why): string {
  const facts = why.facts.map((fact) => `${fact.holds ? "!" : "-"} ${fact.about}: ${fact.text}`);
  return [`${why.kind} ${why.subject}: ${why.answer}`, ...facts].join("\n");
}
