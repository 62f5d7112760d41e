/** Places the steps of a flow: a step stands right of all steps that it waits for. */

export interface Placed {
  name: string;
  layer: number;
  row: number;
}

interface Step {
  step: string;
  after: readonly string[];
}

const SWEEPS = 4;

/** Return where each step stands: its layer is its longest way from a beginning, its row puts it near its neighbours. */
export function placed(steps: readonly Step[]): Map<string, Placed> {
  const layerOf = layersOf(steps);
  const layers: string[][] = [];
  for (const { step } of steps) (layers[layerOf.get(step) ?? 0] ??= []).push(step);
  const before = new Map(steps.map((each) => [each.step, each.after]));
  const behind = new Map<string, string[]>();
  for (const each of steps) for (const name of each.after) behind.set(name, [...(behind.get(name) ?? []), each.step]);
  const found = new Map<string, Placed>();
  const note = () => layers.forEach((names, layer) => names.forEach((name, row) => found.set(name, { name, layer, row })));
  note();
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const neighbours = sweep % 2 ? behind : before;
    for (const names of layers) {
      const middle = new Map(names.map((name, row) => [name, middleOf(neighbours.get(name) ?? [], found, row)]));
      names.sort((one, two) => (middle.get(one) ?? 0) - (middle.get(two) ?? 0));
      note();
    }
  }
  return found;
}

function layersOf(steps: readonly Step[]): Map<string, number> {
  const found = new Map<string, number>();
  const known = new Map(steps.map((each) => [each.step, each]));
  const layer = (name: string, seen: ReadonlySet<string>): number => {
    const ready = found.get(name);
    if (ready !== undefined) return ready;
    const waits = (known.get(name)?.after ?? []).filter((each) => known.has(each) && !seen.has(each));
    const deepest = Math.max(-1, ...waits.map((each) => layer(each, new Set([...seen, name]))));
    found.set(name, deepest + 1);
    return deepest + 1;
  };
  for (const { step } of steps) layer(step, new Set());
  return found;
}

function middleOf(names: readonly string[], at: ReadonlyMap<string, Placed>, otherwise: number): number {
  const rows = names.map((name) => at.get(name)?.row).filter((row) => row !== undefined);
  return rows.length ? rows.reduce((sum, row) => sum + row, 0) / rows.length : otherwise;
}
