import type { ComponentChildren } from "preact";
import { adviceFor, type Problem } from "../api/problem";
import type { Resource } from "../api/resource";
import { CopyButton } from "./copy";
import { Head } from "./page";

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
  const advice = adviceFor(problem);
  return (
    <section class="problem" role="alert">
      <h2>{problem.message.charAt(0).toUpperCase() + problem.message.slice(1)}</h2>
      {advice && (
        <p>
          <Advice text={advice} />
        </p>
      )}
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </section>
  );
}

/** Commands in an advice look like commands. */
function Advice({ text }: { text: string }) {
  return <>{text.split("`").map((piece, index) => (index % 2 ? <code key={index}>{piece}</code> : piece))}</>;
}

interface Props<T> {
  of: Resource<T>;
  /** The name of a page whose head comes with its data: it stands there before, too. */
  title?: string;
  children: (data: T) => ComponentChildren;
}

/** What a resource has: its data as `children` show them, or that it loads, or its problem. */
export function Show<T>({ of, title, children }: Props<T>) {
  const data = of.data.value;
  const problem = of.problem.value;
  if (data === null) {
    return (
      <>
        {title && <Head title={title} />}
        {problem ? <ProblemView problem={problem} retry={of.reload} /> : <Loading />}
      </>
    );
  }
  return (
    <>
      {problem && (
        <p class="banner" role="alert">
          {problem.message}: what you see is older. <Advice text={adviceFor(problem)} />
        </p>
      )}
      {children(data)}
    </>
  );
}
