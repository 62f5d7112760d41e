import { signal } from "@preact/signals";
import { BASE } from "../app/base";
import { Problem } from "./problem";
import type { ProblemBody, Routes } from "./types";

export type Route = keyof Routes;
export type Answer<R extends Route> = Routes[R]["answer"];
export type Query<R extends Route> = Routes[R]["query"];

export interface Call<R extends Route> {
  path?: Record<string, string>;
  query?: Query<R>;
  body?: Routes[R]["body"];
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

export interface Reply<T> {
  data: T;
  /** The answer as it was sent: numbers in it are not rounded. */
  text: string;
  etag: string | null;
  status: number;
  /** The audit entry of a single act, by which it can be undone. */
  audit: string | null;
}

/** False once the service has said that it does not know the visitor. */
export const loggedIn = signal(true);

/** Milliseconds by which the clock of the store is ahead of the clock of this browser. */
export const clockSkew = signal(0);

export const API = `${BASE}api/v1`;

/** Return the address of a route, with the values of its path and query. */
export function addressOf(path: string, values: Record<string, string> = {}, query: object = {}): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? ""));
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== undefined && each !== null && each !== "") search.append(name, String(each));
    }
  }
  const text = search.toString();
  return `${API}${filled}${text ? `?${text}` : ""}`;
}

/** Send a request, and return the whole reply. Raises Problem. */
export async function send<R extends Route>(route: R, call: Call<R> = {}): Promise<Reply<Answer<R>>> {
  const [method = "GET", path = ""] = route.split(" ");
  const headers: Record<string, string> = { Accept: "application/json", ...call.headers };
  const sent: RequestInit = { method, headers, credentials: "same-origin", signal: call.signal ?? null };
  if (call.body !== undefined && call.body !== null) {
    headers["Content-Type"] = "application/json";
    sent.body = JSON.stringify(call.body);
  }
  const response = await fetched(addressOf(path, call.path, call.query), sent);
  const text = await response.text();
  const etag = response.headers.get("ETag");
  if (!response.ok) {
    if (response.status === 401) loggedIn.value = false;
    const wait = 1000 * (Number(response.headers.get("Retry-After")) || 0);
    throw new Problem(response.status, parsed<Partial<ProblemBody>>(text) ?? {}, etag, wait);
  }
  const data = parsed<Answer<R>>(text);
  noteTime(data);
  return { data: data as Answer<R>, text, etag, status: response.status, audit: response.headers.get("Rota-Audit") };
}

/** Send a request, and return what it answers. Raises Problem. */
export async function ask<R extends Route>(route: R, call: Call<R> = {}): Promise<Answer<R>> {
  return (await send(route, call)).data;
}

async function fetched(address: string, sent: RequestInit): Promise<Response> {
  try {
    return await fetch(address, sent);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Problem(0, { detail: "the service does not answer" });
  }
}

function parsed<T>(text: string): T | null {
  try {
    return text ? (JSON.parse(text) as T) : null;
  } catch {
    return null;
  }
}

function noteTime(data: unknown): void {
  if (data && typeof data === "object" && "now" in data && typeof data.now === "string") noteNow(data.now);
}

/** Note the time of the store, as it has just said it. */
export function noteNow(now: string): void {
  const skew = Date.parse(now) - Date.now();
  if (Number.isFinite(skew) && Math.abs(skew - clockSkew.peek()) > 500) clockSkew.value = skew;
}
