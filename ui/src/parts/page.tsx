import type { ComponentChildren } from "preact";

/** The head of a page: its name, what it is about, and what can be done. */
export function Head({ title, about, children }: { title: ComponentChildren; about?: ComponentChildren; children?: ComponentChildren }) {
  return (
    <header class="pagehead">
      <div>
        <h1>{title}</h1>
        {about && <p class="dim">{about}</p>}
      </div>
      {children && <div class="actions">{children}</div>}
    </header>
  );
}
