import type { ComponentChildren } from "preact";
import type { Why } from "../../api/types";
import { Sentence } from "../../parts/sentence";
import "../../styles/why.css";

/** The answer in one sentence, then all that was looked at; what holds the work back is marked. */
export function Answer({ why, children }: { why: Why; children?: ComponentChildren }) {
  return (
    <section class="answer" aria-label="Answer">
      <p class="verdict" data-held={why.held} aria-live="polite">
        <Sentence text={why.answer} />
      </p>
      <p class="dim">
        {why.kind} <span class="mono">{why.subject}</span>
      </p>
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

export function textOf(why: Why): string {
  const facts = why.facts.map((fact) => `${fact.holds ? "!" : "-"} ${fact.about}: ${fact.text}`);
  return [`${why.kind} ${why.subject}: ${why.answer}`, ...facts].join("\n");
}
