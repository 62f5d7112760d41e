import { computed, effect, signal, type Signal } from "@preact/signals";

export type Theme = "auto" | "light" | "dark";
export type Zone = "mine" | "schedule" | "utc";
export type Density = "dense" | "roomy";

/** A preference of this browser. It lives in its storage, and never leaves it. */
function kept<T extends string>(name: string, values: readonly T[]): Signal<T> {
  const [first] = values as readonly [T];
  const found = read(name);
  const value = signal<T>(values.find((each) => each === found) ?? first);
  effect(() => write(name, value.value));
  return value;
}

export function read(name: string): string | null {
  try {
    return window.localStorage.getItem(`rota.${name}`);
  } catch {
    return null;
  }
}

export function write(name: string, value: string): void {
  try {
    window.localStorage.setItem(`rota.${name}`, value);
  } catch {
    // A browser that keeps nothing still shows everything.
  }
}

/** A text that this browser keeps. */
function keptText(name: string): Signal<string> {
  const value = signal(read(name) ?? "");
  effect(() => write(name, value.value));
  return value;
}

export const THEMES: readonly Theme[] = ["auto", "light", "dark"];
export const ZONES: readonly Zone[] = ["mine", "schedule", "utc"];
export const DENSITIES: readonly Density[] = ["dense", "roomy"];

export const theme = kept("theme", THEMES);
export const zone = kept("zone", ZONES);
export const density = kept("density", DENSITIES);
/** Columns of the list of runs that are not shown, by name. */
export const withoutColumns = keptText("without");
/** The address of a trace elsewhere: `{trace}` in it stands for the id of the trace. */
export const traceAddress = keptText("trace");

const systemIsDark = signal(false);

/** What is in force, by the theme or by the system. */
export const scheme = computed(() => (theme.value === "auto" ? (systemIsDark.value ? "dark" : "light") : theme.value));

export const MY_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** The zone in which times without a zone of their own are shown. */
export const shownZone = computed(() => (zone.value === "utc" ? "UTC" : MY_ZONE));

export function following<T>(values: readonly T[], value: T): T {
  return values[(values.indexOf(value) + 1) % values.length] as T;
}

export function startPreferences(): void {
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  systemIsDark.value = system.matches;
  system.addEventListener("change", () => (systemIsDark.value = system.matches));
  effect(() => {
    document.documentElement.dataset["theme"] = theme.value;
    document.documentElement.dataset["density"] = density.value;
  });
}
