import type { FlowPeriodsSteps } from "../../api/types";
import { hrefOf } from "../../app/router";
import { markOf, wordOf } from "../../parts/state";
import { placed } from "./layers";

const WIDTH = 168;
const HEIGHT = 42;
const ACROSS = 56;
const DOWN = 14;
/** A flow with more steps is shown as a grid only. */
export const MOST = 200;

/** The steps of one period as a graph. Its nodes are links; what a step waits for stands left of it. */
export function Graph({ steps }: { steps: readonly FlowPeriodsSteps[] }) {
  const at = placed(steps);
  const layers = Math.max(0, ...[...at.values()].map((each) => each.layer)) + 1;
  const rows = Math.max(0, ...[...at.values()].map((each) => each.row)) + 1;
  const x = (name: string) => (at.get(name)?.layer ?? 0) * (WIDTH + ACROSS) + 1;
  const y = (name: string) => (at.get(name)?.row ?? 0) * (HEIGHT + DOWN) + 1;
  const width = layers * (WIDTH + ACROSS) - ACROSS + 2;
  const height = rows * (HEIGHT + DOWN) - DOWN + 2;
  return (
    <div class="tablebox" role="region" aria-label="The steps as a graph" tabIndex={0}>
      <svg class="graph" width={width} height={height} viewBox={`0 0 ${width} ${height}`}>
        {steps.flatMap((step) =>
          step.after.map((name) => (
            <path key={`${name} ${step.step}`} data-blocks={step.blocked_by.includes(name)} d={curve(x(name) + WIDTH, y(name) + HEIGHT / 2, x(step.step), y(step.step) + HEIGHT / 2)} />
          )),
        )}
        {steps.map((step) => (
          <a key={step.step} href={addressOf(step)} aria-label={`${step.step}: ${wordOf(step.state)}`}>
            <g transform={`translate(${x(step.step)} ${y(step.step)})`} data-state={step.state}>
              <rect width={WIDTH} height={HEIGHT} rx="5" />
              <text x="10" y="17">{cut(step.step)}</text>
              <text x="10" y="33" class="small">
                {markOf(step.state)} {wordOf(step.state)}
              </text>
            </g>
          </a>
        ))}
      </svg>
    </div>
  );
}

function addressOf(step: FlowPeriodsSteps): string {
  return step.run ? hrefOf(`/runs/${encodeURIComponent(step.run)}`) : hrefOf(`/tasks/${encodeURIComponent(step.task)}`);
}

function curve(fromX: number, fromY: number, toX: number, toY: number): string {
  const middle = (fromX + toX) / 2;
  return `M${fromX} ${fromY}C${middle} ${fromY} ${middle} ${toY} ${toX} ${toY}`;
}

function cut(name: string): string {
  return name.length > 22 ? `${name.slice(0, 21)}…` : name;
}
