import { signal } from "@preact/signals";
import { Dialog } from "../parts/dialog";
import { allBindings } from "./keys";

export const helpOpen = signal(false);

export function Help() {
  if (!helpOpen.value) return null;
  const groups = Map.groupBy(allBindings(), (binding) => binding.group);
  return (
    <Dialog title="Keys" onClose={() => (helpOpen.value = false)} wide>
      <div class="keys">
        {[...groups].map(([group, bindings]) => (
          <section key={group}>
            <h3>{group}</h3>
            <dl>
              {bindings.map((binding) => (
                <div key={binding.keys}>
                  <dt>
                    <kbd>{binding.keys.replace("ctrl+k", "Ctrl K")}</kbd>
                  </dt>
                  <dd>{binding.does}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}
