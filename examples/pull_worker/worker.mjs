// A pull worker in plain JavaScript: node 20, no packages, no Python.
//
//   ROTA_SERVER=http://127.0.0.1:8100 ROTA_TOKEN=rota_… node worker.mjs
//
// It declares the task `shout`, claims its runs, renews their leases while it works, and says what became of them.
import { hostname } from "node:os";
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

const server = (process.env.ROTA_SERVER ?? "http://127.0.0.1:8100").replace(/\/$/, "") + "/api/v1";
const token = process.env.ROTA_TOKEN ?? "";
const worker = process.env.WORKER_NAME ?? `${hostname()}-${randomUUID()}`; // a new name for every start
const lease = Number(process.env.WORKER_LEASE ?? 30); // seconds

const task = {
  description: "Shout a text",
  retry: 3,
  schema: { type: "object", properties: { text: { type: "string" }, seconds: { type: "number", default: 0 } }, required: ["text"] },
};

const handlers = {
  async shout({ text, seconds = 0 }, stop) {
    await sleep(seconds * 1000, undefined, { signal: stop });
    return text.toUpperCase();
  },
};

class Refused extends Error {}

// Every request may get lost, and can be sent again: the service answers the same.
async function send(method, path, body) {
  for (let pause = 200; ; pause = Math.min(pause * 2, 5000)) {
    try {
      const answer = await fetch(server + path, {
        method,
        headers: { "Content-Type": "application/json", Authorization: `Bearer ${token}` },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(90_000),
      });
      if (answer.ok) return await answer.json();
      if (![429, 502, 503, 504].includes(answer.status)) throw new Refused(`${path}: ${answer.status} ${await answer.text()}`);
    } catch (error) {
      if (error instanceof Refused) throw error;
      console.log(`again: ${path}`);
    }
    await sleep(pause);
  }
}

// Renew the lease three times before it lapses. The answer says whether the run is still ours.
async function keep(run, stop) {
  while (!stop.signal.aborted) {
    await sleep((lease * 1000) / 3, undefined, { signal: stop.signal });
    const body = { worker, lease, leases: [{ run: run.id, fence: run.fence }] };
    const [word] = (await send("POST", "/renew", body)).items;
    if (word !== "ok") stop.abort(word); // lost, cancel or pause
  }
}

async function work(run) {
  console.log(`started ${run.id} fence ${run.fence}`);
  const stop = new AbortController();
  const kept = keep(run, stop).catch(() => {});
  let said;
  try {
    said = { outcome: "succeeded", result: await handlers[run.task](run.args, stop.signal) };
  } catch (error) {
    const word = { cancel: "cancelled", pause: "paused" }[stop.signal.reason];
    said = word ? { outcome: word } : { outcome: "failed", error: { type: error.name, message: error.message, traceback: error.stack } };
  }
  stop.abort("done");
  await kept;
  const [word] = (await send("POST", "/settle", { worker, outcomes: [{ run: run.id, fence: run.fence, ...said }] })).items;
  console.log(`${said.outcome} ${run.id}: ${word}`); // applied; already, if the first answer got lost; stale, if we were too late
}

let stopping = false;
process.on("SIGTERM", () => (stopping = true));
process.on("SIGINT", () => (stopping = true));

await send("PUT", "/tasks/shout", task);
console.log(`worker ${worker} is ready`);
for (let n = 1; !stopping; n++) {
  const body = { worker, n, tasks: Object.keys(handlers), free: 5, lease, wait: 20, report: { host: hostname(), pid: process.pid, seats: 5 } };
  const batch = await send("POST", "/claim", body);
  if (batch.stop) break;
  await Promise.all(batch.runs.map(work));
}
await send("POST", "/claim", { worker, n: Date.now(), tasks: [], free: 0 }); // say goodbye
