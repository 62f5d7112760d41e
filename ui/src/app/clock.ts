import { computed, signal } from "@preact/signals";
import { clockSkew } from "../api/client";

const browserNow = signal(Date.now());

/** The time of the store in milliseconds; it moves once a second, while the page is shown. */
export const now = computed(() => browserNow.value + clockSkew.value);

export function startClock(): void {
  setInterval(() => {
    if (document.visibilityState === "visible") browserNow.value = Date.now();
  }, 1_000);
  document.addEventListener("visibilitychange", () => (browserNow.value = Date.now()));
}
