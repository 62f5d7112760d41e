import type { ComponentChildren } from "preact";
import { adviceFor, type Problem } from "../api/problem";
import type { Resource } from "../api/resource";
import { CopyButton } from "./copy";

export function Loading() {
  return (
    <p class="loading" role="status">
      Loading …
    </p>
  );
}

/** Nothing here, and how to get something here. */
export function Empty({ title, children, command }: { title: string; children?: ComponentChildren; command?: string }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children}
      {command && (
        <p class="command">
          <code>{command}</code> <CopyButton text={command} />
        </p>
      )}
    </div>
  );
}

export function ProblemView({ problem, retry }: { problem: Problem; retry?: () => void }) {
  return (
    <section class="problem" role="alert">
      <h1>{problem.message}</h1>
      <p>{adviceFor(problem)}</p>
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </section>
  );
}

/** What a resource has: its data as `children` show them, or that it loads, or its problem. */
export function Show<T>({ of, children }: { of: Resource<T>; children: (data: T) => ComponentChildren }) {
  const data = of.data.value;
  const problem = of.problem.value;
  if (data === null) return problem ? <ProblemView problem={problem} retry={of.reload} /> : <Loading />;
  return (
    <>
      {problem && (
        <p class="banner" role="alert">
          {problem.message}: what you see is older. {adviceFor(problem)}
        </p>
      )}
      {children(data)}
    </>
  );
}
