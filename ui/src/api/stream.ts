import { signal } from "@preact/signals";
import { API, loggedIn, noteNow } from "./client";
import { MessageReader, type Message } from "./sse";

/**
 * What happens in the store, as it happens. One tab of the browser has the stream and tells the others; a hidden tab
 * has none, and reads everything again when it is shown.
 */

export type Topic =
  "runs" | "tasks" | "schedules" | "flows" | "operations" | "decisions" | "depths" | "stats" | "workers";
export const TOPICS: Topic[] = [
  "runs", "tasks", "schedules", "flows", "operations", "decisions", "depths", "stats", "workers",
];

export type Liveness = "live" | "paused" | "reconnecting";

/** A change of a run, a task or a schedule, as the store recorded it. */
export interface Change {
  at: string;
  name: string;
  of: string | null;
  id: string | null;
  task: string | null;
  key: string | null;
  state: string | null;
  reason: string | null;
  fence: number;
  worker: string | null;
  group: string | null;
}

/** `items` is null if the topic has to be read again. */
export type Listener = (topic: Topic, items: unknown[] | null) => void;

type Told =
  | { kind: "message"; event: string; data: string }
  | { kind: "beat"; live: boolean }
  /** A tab has come: is there a stream? */
  | { kind: "newcomer" };

const SILENCE = 20_000;
const RECONNECT = 2_000;

export const liveness = signal<Liveness>("reconnecting");
/** When the stream was heard of last, by the clock of this browser. */
export const heardAt = signal(Date.now());

const listeners = new Set<{ topics: readonly Topic[]; listener: Listener }>();
const channel = "BroadcastChannel" in window ? new BroadcastChannel(`rota:${API}`) : null;
let paused = false;
/** Does the stream come, in this tab or another one? A page that is paused does not show it, but knows it. */
let connected = false;
let missed = false;
let leading: AbortController | null = null;
let lastId: string | null = null;
let reading = false;

/** Hear of some topics, until the function that is returned is called. */
export function listen(topics: readonly Topic[], listener: Listener): () => void {
  const entry = { topics, listener };
  listeners.add(entry);
  return () => listeners.delete(entry);
}

let watching = 0;

/** A tab that nobody sees asks for nothing, unless somebody has asked it to watch something. */
export function isAsleep(): boolean {
  return document.visibilityState === "hidden" && watching === 0;
}

/** Let this tab go on while it is hidden, until the function that is returned is called. */
export function watch(): () => void {
  watching += 1;
  onVisibility(); // it may be hidden already
  return () => {
    watching -= 1;
    onVisibility();
  };
}

/** Stop the page from changing, or let it change again. */
export function togglePause(): void {
  paused = !paused;
  showLiveness();
  if (!paused && missed) readAgain();
  missed = false;
}

function showLiveness(): void {
  liveness.value = paused ? "paused" : connected ? "live" : "reconnecting";
}

function tell(topic: Topic, items: unknown[] | null): void {
  for (const each of [...listeners]) if (each.topics.includes(topic)) each.listener(topic, items);
}

function readAgain(topics: readonly Topic[] = TOPICS): void {
  for (const topic of topics) tell(topic, null);
}

function hear(told: Told): void {
  if (told.kind === "newcomer") {
    if (reading) channel?.postMessage({ kind: "beat", live: true } satisfies Told);
    return;
  }
  heardAt.value = Date.now();
  if (told.kind === "beat") {
    connected = told.live;
    showLiveness();
    return;
  }
  if (isAsleep()) return; // it reads everything again when it is shown
  connected = true;
  showLiveness();
  if (paused) {
    missed = true;
    return;
  }
  const data = JSON.parse(told.data) as { items?: unknown[]; topics?: Topic[]; now?: string; resumed?: boolean };
  if (told.event === "hello") {
    if (data.now) noteNow(data.now);
    if (!data.resumed) readAgain(TOPICS.slice(0, 6));
  } else if (told.event === "resync") readAgain(data.topics);
  else if (told.event !== "bye" && data.items) tell(told.event as Topic, data.items);
}

function spread(told: Told): void {
  hear(told);
  channel?.postMessage(told);
}

/** Read the stream until it breaks or this tab gives it up. */
async function read(stop: AbortSignal): Promise<void> {
  const broken = new AbortController();
  const headers: Record<string, string> = { Accept: "text/event-stream" };
  if (lastId !== null) headers["Last-Event-ID"] = lastId;
  const signals = AbortSignal.any([stop, broken.signal]);
  const response = await fetch(`${API}/events?topics=${TOPICS.join(",")}`, { headers, signal: signals });
  if (response.status === 401) loggedIn.value = false;
  if (response.status === 400) lastId = null;
  if (!response.ok || !response.body) throw new Error(`the stream answered ${response.status}`);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const messages = new MessageReader();
  reading = true;
  for (;;) {
    const timer = setTimeout(() => broken.abort(), SILENCE);
    const part = await reader.read().finally(() => clearTimeout(timer));
    if (part.done) return;
    spread({ kind: "beat", live: true });
    for (const message of messages.push(part.value)) take(message);
  }
}

function take(message: Message): void {
  if (message.id !== null) lastId = message.id;
  if (message.event) spread({ kind: "message", event: message.event, data: message.data });
}

async function lead(stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    await read(stop).catch(() => undefined);
    reading = false;
    if (stop.aborted) return;
    connected = false;
    showLiveness();
    channel?.postMessage({ kind: "beat", live: false } satisfies Told);
    await new Promise((resolve) => setTimeout(resolve, RECONNECT));
    while (!loggedIn.peek() && !stop.aborted) await new Promise((resolve) => setTimeout(resolve, RECONNECT));
  }
}

/** Be the tab that reads, as soon as no other one does. */
function stand(): void {
  const mine = new AbortController();
  leading = mine;
  if (!("locks" in navigator)) {
    void lead(mine.signal);
    return;
  }
  navigator.locks
    .request(`rota:${API}`, { signal: mine.signal }, () => lead(mine.signal))
    .catch(() => undefined);
}

function onVisibility(): void {
  if (isAsleep()) {
    leading?.abort();
    leading = null;
    return;
  }
  if (leading !== null) return;
  lastId = null;
  connected = false;
  showLiveness();
  readAgain();
  stand();
}

export function startStream(): void {
  channel?.addEventListener("message", (event: MessageEvent<Told>) => hear(event.data));
  document.addEventListener("visibilitychange", onVisibility);
  channel?.postMessage({ kind: "newcomer" } satisfies Told);
  if (document.visibilityState !== "hidden") stand();
}
