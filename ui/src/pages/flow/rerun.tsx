import { useSignal } from "@preact/signals";
import type { FlowPeriodsSteps } from "../../api/types";
import { act } from "../../parts/act";
import { Dialog } from "../../parts/dialog";
import { FormButtons, NoteField } from "../../parts/form";

/** Asks before a step runs again: it forgets what the step has done. */
export function RerunDialog({ step, onClose, done }: { step: FlowPeriodsSteps; onClose: () => void; done: () => void }) {
  const following = useSignal(true);
  const note = useSignal("");
  const busy = useSignal(false);

  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    busy.value = true;
    const reply = await act(
      "POST /flows/{name}/periods/{period}/rerun",
      {
        path: { name: step.flow, period: step.period },
        body: { step: step.step, following: following.value, note: note.value || null },
      },
      `${step.step} of ${step.period} runs again`,
    );
    busy.value = false;
    if (reply) {
      done();
      onClose();
    }
  }

  return (
    <Dialog title={`Run ${step.step} of ${step.period} again`} onClose={onClose}>
      <form class="form" onSubmit={(event) => void submit(event)}>
        <p>The step forgets that it is done, and starts as soon as what it waits for is done.</p>
        <label>
          <input type="checkbox" checked={following.value} onChange={(event) => (following.value = event.currentTarget.checked)} /> The steps that
          follow it run again too
        </label>
        <NoteField of={note} />
        <FormButtons verb="Run again" disabled={busy.value} onClose={onClose} />
      </form>
    </Dialog>
  );
}
