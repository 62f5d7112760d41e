import type { Signal } from "@preact/signals";
import { ask } from "../api/client";
import { useResource } from "../api/resource";
import type { GetSessionsAnswerItems, GetTokensAnswerItems } from "../api/types";
import { now } from "../app/clock";
import { count } from "../app/format";
import { density, DENSITIES, MY_ZONE, theme, THEMES, traceAddress, zone, ZONES } from "../app/preferences";
import { hrefOf } from "../app/router";
import { logout, may, me } from "../app/session";
import { forget, views } from "../app/views";
import { act } from "../parts/act";
import { Show } from "../parts/empty";
import { Head } from "../parts/page";
import { Table } from "../parts/table";
import { Ago, Time } from "../parts/time";
import "../styles/me.css";

const RIGHTS: [string, string][] = [
  ["read", "see runs, tasks, schedules, flows, workers and decisions"],
  ["read:payload", "see arguments, results and tracebacks; secrets stay hidden"],
  ["submit", "submit and touch tasks"],
  ["operate", "retry, cancel, pause, resume; direct workers; read the audit"],
  ["schedule", "add, change and delete schedules"],
  ["work", "claim and settle runs, as a pull worker"],
  ["metrics", "read the metrics"],
  ["admin", "everything"],
];
const ZONE_WORDS = { mine: `mine (${MY_ZONE})`, schedule: "the schedule's own", utc: "UTC" };

export default function MePage() {
  const who = me.value;
  return (
    <>
      <Head title={who?.name ?? "Me"} about={who?.expires ? <>The token ends <Time at={who.expires} />.</> : "The token does not end by itself."}>
        <button type="button" onClick={() => void logout()}>
          Log out
        </button>
      </Head>
      <div class="columns me">
        <section>
          <h2>How it looks here</h2>
          <div class="form">
            <Choice name="Theme" of={theme} values={THEMES} words={{ auto: "as the system", light: "light", dark: "dark" }} />
            <Choice name="Times" of={zone} values={ZONES} words={ZONE_WORDS} />
            <Choice name="Rows" of={density} values={DENSITIES} words={{ dense: "dense", roomy: "roomy" }} />
          </div>
          <div class="field traces">
            <label for="trace-address">Where traces are ({"{trace}"} stands for the id of one)</label>
            <input id="trace-address" type="text" placeholder="https://traces.example.org/{trace}" value={traceAddress.value} onInput={(event) => (traceAddress.value = event.currentTarget.value)} />
          </div>
          <SavedViews />
          <p class="dim">This browser keeps these choices. Nothing of them leaves it.</p>
        </section>
        <section>
          <h2>What I may do</h2>
          <ul class="rights">
            {RIGHTS.map(([right, words]) => {
              const has = who?.rights.includes(right) ?? false;
              return (
                <li key={right} data-has={has}>
                  <span aria-hidden="true">{has ? "✓" : "–"}</span> <code>{right}</code>{" "}
                  <span>
                    {has ? words : `not this: ${words}`}
                  </span>
                </li>
              );
            })}
          </ul>
          {who?.tasks.length ? <p class="dim">Only for the tasks {who.tasks.join(", ")}.</p> : null}
        </section>
      </div>
      <Sessions />
      {may("admin") && <Tokens />}
    </>
  );
}

function SavedViews() {
  if (views.value.length === 0) return <p class="dim">Press v on any page to give its address a name.</p>;
  return (
    <ul class="saved" aria-label="My views">
      {views.value.map((view) => (
        <li key={view.name} class="row">
          <a href={hrefOf(view.path)}>{view.name}</a> <code class="dim">{view.path}</code>
          <button type="button" class="small" aria-label={`Forget ${view.name}`} onClick={() => forget(view)}>
            Forget
          </button>
        </li>
      ))}
    </ul>
  );
}

/** Where I am logged in. */
function Sessions() {
  const sessions = useResource("sessions", (signal) => ask("GET /sessions", { signal }));
  async function end(session: GetSessionsAnswerItems): Promise<void> {
    await act("DELETE /sessions/{id}", { path: { id: session.id } }, "The session has ended");
    sessions.reload();
  }
  return (
    <section class="part">
      <h2>My sessions</h2>
      <Show of={sessions}>
        {(found) =>
          found.items.length === 0 ? (
            <p class="dim">This service keeps no sessions: another program says who you are.</p>
          ) : (
            <Table
              label="Sessions"
              rows={found.items}
              keyOf={(session) => session.id}
              columns={[
                { name: "begun", cell: (session) => <Ago at={session.created_at} /> },
                { name: "ends", cell: (session) => <Ago at={session.expires_at} /> },
                { name: "session", wide: true, cell: (session) => (session.here ? <strong>this one</strong> : <span class="mono dim">{session.id.slice(0, 10)}</span>) },
                {
                  name: "do",
                  cell: (session) =>
                    !session.here && (
                      <button type="button" class="small" onClick={() => void end(session)}>
                        End it
                      </button>
                    ),
                },
              ]}
            />
          )
        }
      </Show>
    </section>
  );
}

/** Whom the service lets in, for admins. Nobody gets to see a token again. */
function Tokens() {
  const tokens = useResource("tokens", (signal) => ask("GET /tokens", { signal }));
  return (
    <section class="part">
      <h2>Tokens</h2>
      <Show of={tokens}>
        {(found) => (
          <>
            <Table
              label="Tokens"
              cards
              rows={found.items}
              keyOf={(token) => token.name}
              columns={[
                { name: "name", cell: (token) => token.name },
                { name: "tokens", right: true, cell: (token) => token.tokens || <span class="dim">by proxy</span> },
                { name: "rights", cell: (token) => (token.rights.includes("admin") ? "everything" : token.rights.join(", ")) },
                { name: "only for", cell: (token) => onlyFor(token) || <span class="dim">everything here</span> },
                { name: "ends", wide: true, cell: (token) => <Ends at={token.expires_at} /> },
              ]}
            />
            <p class="dim">
              Make one with <code>rota token new NAME --role operator</code>; take one away in the file of ROTA_TOKENS, which is read again when it changes.
            </p>
          </>
        )}
      </Show>
    </section>
  );
}

/** A credential that has ended lets nobody in, and still has its lines in the file. */
function Ends({ at }: { at: string | null }) {
  if (at === null) return <span class="dim">never</span>;
  return Date.parse(at) > now.value ? <Time at={at} seconds={false} /> : <span class="bad">ended</span>;
}

function onlyFor(token: GetTokensAnswerItems): string {
  const parts: [string, readonly string[]][] = [["tasks", token.tasks], ["queues", token.queues], ["namespaces", token.namespaces]];
  const words = parts.filter(([, names]) => names.length > 0).map(([name, names]) => `${name} ${names.join(", ")}`);
  return [...words, ...(token.per_minute ? [`${count(token.per_minute)} requests a minute`] : [])].join("; ");
}

function Choice<T extends string>({ name, of, values, words }: { name: string; of: Signal<T>; values: readonly T[]; words: Record<T, string> }) {
  return (
    <fieldset class="choice">
      <legend>{name}</legend>
      {values.map((value) => (
        <label key={value}>
          <input type="radio" name={name} checked={of.value === value} onChange={() => (of.value = value)} /> {words[value]}
        </label>
      ))}
    </fieldset>
  );
}
