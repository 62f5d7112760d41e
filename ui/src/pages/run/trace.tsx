import { useSignal } from "@preact/signals";
import type { RunError } from "../../api/types";
import { CopyButton } from "../../parts/copy";
import { lastName } from "../../parts/state";

interface FrameText {
  lines: string[];
  /** Code of an installed package, or of Python itself. */
  foreign: boolean;
}

const FOREIGN = /site-packages|dist-packages|[/\\]lib[/\\]python\d|<frozen |[/\\]rota[/\\](engine|task|app)[/\\]/;

/** Return the parts of a traceback: what is before the first frame, the frames, and what is behind them. */
function partsOf(traceback: string): { head: string[]; frames: FrameText[]; tail: string[] } {
  const head: string[] = [];
  const frames: FrameText[] = [];
  const tail: string[] = [];
  for (const line of traceback.replace(/\n$/, "").split("\n")) {
    if (/^ {2}File /.test(line)) frames.push({ lines: [line], foreign: FOREIGN.test(line) });
    else if (frames.length && /^\s/.test(line)) frames.at(-1)?.lines.push(line);
    else (frames.length ? tail : head).push(line);
  }
  return { head, frames, tail };
}

/** The error of a run. Frames of your code are shown; those of packages are folded. */
export function Trace({ error }: { error: RunError }) {
  const all = useSignal(false);
  const { frames, tail } = partsOf(error.traceback);
  const own = frames.filter((frame) => !frame.foreign);
  const shown = all.value || own.length === 0 ? frames : own;
  const folded = frames.length - shown.length;
  return (
    <section>
      <h2 class="bad">
        {lastName(error.type)}: {error.message}
      </h2>
      {error.traceback && (
        <>
          <pre class="trace" tabIndex={0} aria-label="Traceback">
            {[...shown.flatMap((frame) => frame.lines), ...tail].join("\n")}
          </pre>
          <p class="row">
            {(folded > 0 || all.value) && own.length > 0 && (
              <button type="button" class="small" aria-expanded={all.value} onClick={() => (all.value = !all.value)}>
                {all.value ? "Only my code" : `Show ${folded} frames of packages`}
              </button>
            )}
            <CopyButton text={error.traceback} label="Copy the traceback" />
          </p>
        </>
      )}
    </section>
  );
}
