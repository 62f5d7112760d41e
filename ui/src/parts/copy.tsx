import { useSignal } from "@preact/signals";

/** Put text into the clipboard. Where the browser has none (plain http), a selection does it. */
export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

export function CopyButton({ text, label = "Copy" }: { text: string; label?: string }) {
  const done = useSignal(false);
  return (
    <button
      type="button"
      class="small"
      onClick={async () => {
        await copyText(text);
        done.value = true;
        setTimeout(() => (done.value = false), 1_500);
      }}
    >
      {done.value ? "Copied" : label}
    </button>
  );
}
