import { effect, signal, useSignal } from "@preact/signals";
import { Dialog } from "../parts/dialog";
import { say } from "../parts/toasts";
import { read, write } from "./preferences";
import { place } from "./router";
import { FormButtons } from "../parts/form";

/** A view that somebody has given a name: an address of this control room, kept by this browser. */
export interface View {
  name: string;
  path: string;
}

const MOST = 20;

function keptViews(): View[] {
  try {
    const found: unknown = JSON.parse(read("views") ?? "[]");
    return Array.isArray(found) ? found.filter(isView).slice(0, MOST) : [];
  } catch {
    return [];
  }
}

function isView(value: unknown): value is View {
  const view = value as Partial<View> | null;
  return typeof view?.name === "string" && typeof view.path === "string" && view.path.startsWith("/");
}

export const views = signal<View[]>(keptViews());
export const namingView = signal(false);
effect(() => write("views", JSON.stringify(views.value)));

/** Return the address that is shown, below the root of the service. */
export function pathHere(): string {
  const { path, query } = place.value;
  return query.size ? `${path}?${query}` : path;
}

export function forget(view: View): void {
  views.value = views.value.filter((each) => each.name !== view.name);
}

/** Asks for a name of the view that is shown. A name that is taken gets the new address. */
export function NameView() {
  return namingView.value ? <OpenNameView /> : null;
}

function OpenNameView() {
  const name = useSignal("");
  const close = () => (namingView.value = false);

  function save(event: Event): void {
    event.preventDefault();
    const view = { name: name.value.trim(), path: pathHere() };
    if (!view.name) return;
    views.value = [...views.value.filter((each) => each.name !== view.name), view].slice(-MOST);
    close();
    say(`“${view.name}” is in the list of pages`);
  }

  return (
    <Dialog title="Save this view" onClose={close}>
      <form class="form" onSubmit={save}>
        <p class="dim">
          <code>{pathHere()}</code>
        </p>
        <div class="field">
          <label for="view-name">Name</label>
          <input id="view-name" type="text" required maxLength={40} autofocus value={name.value} onInput={(event) => (name.value = event.currentTarget.value)} />
        </div>
        <FormButtons verb="Save the view" onClose={close} />
      </form>
    </Dialog>
  );
}
