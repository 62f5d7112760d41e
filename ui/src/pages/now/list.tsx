import { useSignal } from "@preact/signals";
import { now } from "../../app/clock";
import { counted } from "../../app/format";
import { go } from "../../app/router";
import { may } from "../../app/session";
import { act } from "../../parts/act";
import { CopyButton } from "../../parts/copy";
import { WhyLink } from "../../parts/link";
import { OperationDialog, type Asked } from "../../parts/operation";
import { useStill } from "../../parts/still";
import type { Fix, Need } from "./needs";

/** Of many things of one kind, the first ones are shown, so that they hide nothing of another kind. */
const OF_KIND = 2;
/** More than these are folded anyhow: the numbers below them matter too. */
const FOLDED = 14;
const START = "rota worker -A app";

function folded(needs: Need[]): Need[] {
  const seen = new Map<string, number>();
  const first = needs.filter(({ id }) => {
    const kind = id.split(" ", 1)[0] as string;
    seen.set(kind, (seen.get(kind) ?? 0) + 1);
    return (seen.get(kind) ?? 0) <= OF_KIND;
  });
  return needs.length <= FOLDED - 4 ? needs : first.slice(0, FOLDED);
}

interface Props {
  needs: Need[];
  /** Is there a task or a worker yet? */
  begun: boolean;
  reload: () => void;
}

export function Needs({ needs, begun, reload }: Props) {
  const asked = useSignal<Asked | null>(null);
  const all = useSignal(false);
  const shownNow = all.value ? needs : folded(needs);
  const rest = needs.filter((need) => !shownNow.includes(need));
  const still = useStill(shownNow, (need) => need.id);
  const shown = still.rows;
  if (needs.length === 0) return <Calm begun={begun} />;
  return (
    <section class="needs" aria-label="Needs you" {...still.hold}>
      <h2>
        {counted(needs.length, "thing")} {needs.length === 1 ? "needs" : "need"} you{" "}
        {still.fresh > 0 && (
          <button type="button" class="pill new" onClick={still.show}>
            {counted(still.fresh, "new one")}: show
          </button>
        )}
      </h2>
      <ol>
        {shown.map((need) => (
          <li key={need.id} data-row data-gone={still.isGone(need)} data-weight={need.weight >= 80 ? "high" : need.weight >= 50 ? "middle" : "low"}>
            <div>
              <strong>{need.title}</strong>
              <span class="dim">{need.detail}</span>
            </div>
            <span class="row">
              <FixButton fix={need.fix} reload={reload} onAsk={(each) => (asked.value = each)} />
              <WhyLink subject={need.subject} {...(need.key ? { key_: need.key } : {})} />
            </span>
          </li>
        ))}
      </ol>
      {rest.length > 0 && (
        <button type="button" class="more" onClick={() => { all.value = true; still.show(); }}>
          Show {counted(rest.length, "other")}: {rest.slice(0, 3).map((need) => need.title).join(" · ")}
          {rest.length > 3 ? " …" : ""}
        </button>
      )}
      {asked.value && <OperationDialog asked={asked.value} onClose={() => { asked.value = null; reload(); }} />}
    </section>
  );
}

/** Nothing is wrong: either all is well, or nothing has begun. */
function Calm({ begun }: { begun: boolean }) {
  return (
    <section class="needs calm" aria-label="Needs you">
      {begun ? (
        <p>
          <strong>Nothing needs you.</strong> Every task has a worker, no run failed in the last hour, nothing is paused.
        </p>
      ) : (
        <p>
          <strong>Nothing has begun yet.</strong> Tasks appear here when the first worker of your app starts: <code>{START}</code> <CopyButton text={START} />
        </p>
      )}
    </section>
  );
}

function FixButton({ fix, reload, onAsk }: { fix: Fix; reload: () => void; onAsk: (asked: Asked) => void }) {
  if (fix.kind === "command") {
    return (
      <>
        <code>{fix.text}</code> <CopyButton text={fix.text} />
      </>
    );
  }
  if (fix.kind === "open") {
    return (
      <button type="button" class="small" onClick={() => go(fix.path)}>
        {fix.name}
      </button>
    );
  }
  if (!may("operate")) return null;
  return (
    <button type="button" class="small" onClick={() => void mend(fix, reload, onAsk)}>
      {nameOf(fix)}
    </button>
  );
}

function nameOf(fix: Fix): string {
  if (fix.kind === "operation") return "Retry them …";
  if (fix.kind === "reset-mark") return "Close the breaker";
  return "Resume";
}

async function mend(fix: Fix, reload: () => void, onAsk: (asked: Asked) => void): Promise<void> {
  if (fix.kind === "operation") {
    const since = new Date(now.peek() - 3_600_000).toISOString();
    onAsk({ action: fix.action, filter: { task: [fix.task], state: ["failed"], error: fix.error, since, by: "finished" } });
    return;
  }
  if (fix.kind === "resume-task") await act("POST /tasks/{name}/resume", { path: { name: fix.task }, body: {} }, `${fix.task} resumed`);
  if (fix.kind === "resume-schedule") await act("POST /schedules/{id}/resume", { path: { id: fix.id }, body: {} }, `${fix.id} resumed`);
  if (fix.kind === "reset-mark") await act("DELETE /marks/{task}/{key}", { path: { task: fix.task, key: fix.key } }, "The breaker is closed");
  reload();
}
