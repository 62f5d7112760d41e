import { Time } from "./time";

/** What the key may do now: refused by a breaker, resting, or free. */
export function KeyState({ of }: { of: { breaker: boolean; rests_until: string | null } | undefined }) {
  if (!of) return <span class="dim">–</span>;
  if (!of.rests_until) return <span class="dim">free</span>;
  return (
    <span class={of.breaker ? "bad" : "odd"}>
      {of.breaker ? "breaker open until" : "rests until"} <Time at={of.rests_until} />
    </span>
  );
}
