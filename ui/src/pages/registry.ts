import type { ComponentType } from "preact";
import type { Params } from "../app/router";

export interface PageProps {
  params: Params;
}

export interface PageEntry {
  name: string;
  path: string;
  /** `g`, then this letter, goes to the page. A page without a letter is not in the rail. */
  letter?: string;
  /** The entry of the rail that is lit while this page is shown. */
  under?: string;
  /** A line in the rail begins before this page. */
  begins?: boolean;
  load: () => Promise<{ default: ComponentType<PageProps> }>;
}

/** All pages. To add one: write its file beside this one, and name the file here. */
export const PAGES: readonly PageEntry[] = [
  { name: "Now", path: "/", letter: "n", load: () => import("./now/page") },
  { name: "Runs", path: "/runs", letter: "r", load: () => import("./runs/page") },
  { name: "Run", path: "/runs/:id", under: "Runs", load: () => import("./run/page") },
  { name: "Errors", path: "/errors", letter: "e", load: () => import("./errors") },
  { name: "Why", path: "/why", letter: "y", load: () => import("./why/page") },
  { name: "Tasks", path: "/tasks", letter: "t", begins: true, load: () => import("./tasks") },
  { name: "Task", path: "/tasks/:name", under: "Tasks", load: () => import("./task/page") },
  { name: "Schedules", path: "/schedules", letter: "s", load: () => import("./schedules/page") },
  { name: "Schedule", path: "/schedules/:id", under: "Schedules", load: () => import("./schedule/page") },
  { name: "Time line", path: "/timeline", letter: "l", load: () => import("./timeline/page") },
  { name: "Calendar", path: "/calendar", letter: "c", load: () => import("./calendar/page") },
  { name: "Flows", path: "/flows", letter: "f", load: () => import("./flows") },
  { name: "Flow", path: "/flows/:name", under: "Flows", load: () => import("./flow/page") },
  { name: "Keys", path: "/keys", letter: "k", load: () => import("./keys") },
  { name: "Decisions", path: "/decisions", letter: "d", begins: true, load: () => import("./decisions") },
  { name: "Workers", path: "/workers", letter: "w", load: () => import("./workers") },
  { name: "Operations", path: "/operations", letter: "o", load: () => import("./operations/page") },
  { name: "Doctor", path: "/doctor", letter: "x", load: () => import("./doctor") },
  { name: "Me", path: "/me", letter: "m", load: () => import("./me") },
];
