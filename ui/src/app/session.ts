import { computed, signal } from "@preact/signals";
import { ask, loggedIn } from "../api/client";
import { passes, Problem } from "../api/problem";
import type { Me } from "../api/types";

export const me = signal<Me | null>(null);
/** Why it is not known who the visitor is. It is asked again until the service answers. */
export const unmet = signal<Problem | null>(null);

/** Milliseconds between two of these questions, unless the service says how long to wait: too many logins, those that
 * met a store that is away among them, pass by themselves, too. */
const AGAIN = 2_000;

/** Where the app of this page runs: production, say. Null if nobody has said. */
export const environment = computed(() => me.value?.environment ?? null);

/** Does the visitor have this right? What a visitor may not do is not offered. */
export function may(right: string): boolean {
  const rights = me.value?.rights ?? [];
  return rights.includes(right) || rights.includes("admin");
}

/** Exchange a token for a session. Raises Problem. */
export async function login(token: string): Promise<void> {
  await ask("POST /session", { body: { token } });
  await meet();
}

export async function logout(): Promise<void> {
  await ask("DELETE /session");
  me.value = null;
  loggedIn.value = false;
}

/** Learn who the visitor is. */
export async function meet(): Promise<void> {
  me.value = await ask("GET /me");
  loggedIn.value = true;
  unmet.value = null;
}

/** Begin: a token in the fragment becomes a session, and leaves the address at once. */
export async function begin(): Promise<void> {
  const token = new URLSearchParams(window.location.hash.slice(1)).get("token");
  if (token !== null) {
    window.history.replaceState(null, "", window.location.pathname + window.location.search);
  }
  await introduce(token);
}

/** It ends when it is known who the visitor is, or that nobody will be let in: a stream that began before would end as
 * that of a stranger, and show the login. */
async function introduce(token: string | null): Promise<void> {
  try {
    await (token === null ? meet() : login(token));
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    if (token !== null && error.status === 404) return introduce(null);
    if (error.status === 401) loggedIn.value = false;
    else unmet.value = error;
    if (!passes(error)) return;
    await new Promise((resolve) => setTimeout(resolve, error.status === 429 ? Math.max(AGAIN, error.wait) : AGAIN));
    return introduce(token);
  }
}
