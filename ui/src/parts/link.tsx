import type { ComponentChildren } from "preact";
import { hrefOf } from "../app/router";

export function RunLink({ id, children }: { id: string; children?: ComponentChildren }) {
  return (
    <a class="mono" href={hrefOf(`/runs/${encodeURIComponent(id)}`)} title={id}>
      {children ?? shortId(id)}
    </a>
  );
}

export function TaskLink({ name, children }: { name: string; children?: ComponentChildren }) {
  return <a href={hrefOf(`/tasks/${encodeURIComponent(name)}`)}>{children ?? name}</a>;
}

export function ScheduleLink({ id, children }: { id: string; children?: ComponentChildren }) {
  return <a href={hrefOf(`/schedules/${encodeURIComponent(id)}`)}>{children ?? id}</a>;
}

export function WhyLink({ subject, key_: key, children }: { subject: string; key_?: string; children?: ComponentChildren }) {
  return (
    <a class="why" href={hrefOf("/why", { subject, ...(key ? { key } : {}) })}>
      {children ?? "Why?"}
    </a>
  );
}

/** The end of an id tells more than its beginning, which is a time. */
export function shortId(id: string): string {
  return id.length > 14 ? `…${id.slice(-10)}` : id;
}
