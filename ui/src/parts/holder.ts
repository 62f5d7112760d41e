import type { Flow } from "../api/types";

const ORDER = ["blocked", "failed", "running", "waiting", "absent"];

/** Return what `why` is asked about a flow: it knows tasks, and a blocked step says what blocks it and what to do. */
export function holderOf(flow: Flow): string {
  const steps = flow.periods?.find((each) => each.period === flow.period)?.steps ?? flow.periods?.[0]?.steps ?? [];
  const rank = (state: string) => (ORDER.includes(state) ? ORDER.indexOf(state) : ORDER.length);
  const [first] = [...steps].sort((one, other) => rank(one.state) - rank(other.state));
  return first?.task ?? flow.flow;
}
