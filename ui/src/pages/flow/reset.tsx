import type { Flow } from "../../api/types";
import { act } from "../../parts/act";
import { NoteDialog } from "../../parts/note";

/** Asks before a period is forgotten: its steps can be done again. */
export function ResetDialog({ flow, onClose, done }: { flow: Flow; onClose: () => void; done: () => void }) {
  async function reset(note: string): Promise<boolean> {
    const path = { name: flow.flow, period: flow.period };
    const reply = await act("DELETE /flows/{name}/periods/{period}", { path, query: { note: note || null } }, `${flow.flow} has forgotten ${flow.period}`);
    if (reply) done();
    return reply !== null;
  }
  return (
    <NoteDialog
      title={`Reset ${flow.flow} of ${flow.period}`}
      verb="Forget all steps"
      danger
      about="All steps of this period count as not done. Runs that exist stay; nothing starts until the flow is started or looked at again."
      onClose={onClose}
      onDone={reset}
    />
  );
}
