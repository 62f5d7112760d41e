import { pretty } from "../api/raw";
import { CopyButton } from "./copy";

/** JSON as text. */
export function Json({ text, label }: { text: string; label: string }) {
  const shown = pretty(text);
  return (
    <figure class="jsonbox">
      <pre class="json" tabIndex={0} aria-label={label}>
        {shown}
      </pre>
      <CopyButton text={shown} label={`Copy ${label.toLowerCase()}`} />
    </figure>
  );
}
