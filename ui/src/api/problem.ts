import type { Flaw, ProblemBody } from "./types";

/** An answer of the service that is an error; `status` 0: there was no answer at all. */
export class Problem extends Error {
  readonly status: number;
  readonly reason: string | null;
  readonly flaws: Flaw[];
  readonly request: string | null;
  readonly run: string | null;
  readonly etag: string | null;
  /** Milliseconds after which another try may succeed; 0 if nobody has said. */
  readonly wait: number;

  constructor(status: number, body: Partial<ProblemBody>, etag: string | null = null, wait: number = 0) {
    super(body.detail ?? body.title ?? `the service answered ${status}`);
    this.status = status;
    this.reason = body.reason ?? null;
    this.flaws = body.errors ?? [];
    this.request = body.instance ?? null;
    this.run = body.run ?? null;
    this.etag = etag;
    this.wait = wait;
  }
}

/** Does a problem pass by itself? Then it is worth another try. */
export function passes({ status }: Problem): boolean {
  return [0, 429, 503].includes(status);
}

/** What a person can do about a problem. */
export function adviceFor(problem: Problem): string {
  switch (problem.status) {
    case 0:
      return "Is `rota serve` running? This page tries again by itself.";
    case 401:
      return "Your session has ended: log in again.";
    case 403:
      return "Ask an admin for the right, or log in with another token.";
    case 404:
      return "It may have been deleted, or kept only for a while: see the retention of its task.";
    case 412:
      return "Somebody changed it while you looked. Compare both versions below.";
    case 429:
      return "Wait a moment, then try again.";
    case 503:
      return "`rota doctor` says why. This page tries again by itself.";
    default:
      return problem.request ? `The log of the service has it under the request ${problem.request}.` : "";
  }
}
