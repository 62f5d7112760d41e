import { signal, useSignal, useSignalEffect } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { loggedIn } from "../api/client";
import { togglePause } from "../api/stream";
import { Loading, ProblemView } from "../parts/empty";
import { Head } from "../parts/page";
import { Toasts, unread } from "../parts/toasts";
import { PAGES, type PageEntry, type PageProps } from "../pages/registry";
import { Boundary } from "./boundary";
import { Help, helpOpen } from "./help";
import { Badge } from "./badge";
import { bind, type Binding } from "./keys";
import { Login } from "./login";
import { Palette, paletteOpen } from "./palette";
import { following, theme, THEMES, zone, ZONES } from "./preferences";
import { QueryBar } from "./querybar";
import { Live, LiveStatus, Rail } from "./rail";
import { go, match, place, type Params } from "./router";
import { askRow, focusAction, moveRow } from "./rows";
import { environment, me, unmet } from "./session";
import { NameView, namingView } from "./views";

interface Shown {
  entry: PageEntry;
  params: Params;
  page: ComponentType<PageProps>;
}

/** The page that is on the screen; it stays until the next one has been loaded. */
const shown = signal<Shown | null>(null);
let shownPath = "";
const missing = signal(false);
const title = signal("");

function findPage(path: string): { entry: PageEntry; params: Params } | null {
  for (const entry of PAGES) {
    const params = match(entry.path, path);
    if (params) return { entry, params };
  }
  return null;
}

function contentElement(): HTMLElement | null {
  return document.getElementById("content");
}

/** The page stays where it is: a link that the router follows would open it again. */
function toContent(event: Event): void {
  event.preventDefault();
  contentElement()?.focus();
}

async function showPage(path: string): Promise<void> {
  const found = findPage(path);
  missing.value = found === null;
  if (!found) return;
  const { default: page } = await found.entry.load();
  if (place.peek().path !== path) return;
  if (shown.peek() && path !== shownPath) contentElement()?.focus({ preventScroll: true }); // the next Tab goes into the page
  shownPath = path;
  shown.value = { ...found, page };
  title.value = found.params["id"] ?? found.params["name"] ?? found.entry.name;
}

function frameBindings(): Binding[] {
  const pages = PAGES.filter((page) => page.letter).map((page) => ({
    keys: `g ${page.letter}`,
    does: page.name,
    group: "Go to",
    run: () => go(page.path),
  }));
  return [
    { keys: "?", does: "Show all keys", group: "Everywhere", run: () => (helpOpen.value = true) },
    { keys: "ctrl+k", does: "Go, act, ask why", group: "Everywhere", run: () => (paletteOpen.value = true) },
    { keys: "/", does: "Search runs", group: "Everywhere", run: () => document.getElementById("query")?.focus() },
    { keys: "p", does: "Pause or resume live changes", group: "Everywhere", run: togglePause },
    { keys: "t", does: "Theme", group: "Everywhere", run: () => (theme.value = following(THEMES, theme.peek())) },
    { keys: "z", does: "Time zone", group: "Everywhere", run: () => (zone.value = following(ZONES, zone.peek())) },
    { keys: "v", does: "Save this view", group: "Everywhere", run: () => (namingView.value = true) },
    { keys: "j", does: "Next row", group: "Lists", run: () => moveRow(1) },
    { keys: "k", does: "Previous row", group: "Lists", run: () => moveRow(-1) },
    { keys: ".", does: "Actions of the row", group: "Lists", run: focusAction },
    { keys: "y", does: "Why? (of the row)", group: "Lists", run: askRow },
    ...pages,
  ];
}

export function Frame() {
  const railOpen = useSignal(false);
  useEffect(() => bind(frameBindings()), []);
  useSignalEffect(() => {
    const { path } = place.value;
    railOpen.value = false;
    void showPage(path);
  });
  useSignalEffect(() => {
    document.title = [unread.value && `● ${unread.value}`, environment.value?.name, title.value, "rota"].filter(Boolean).join(" · ");
  });
  if (!loggedIn.value) return <Login />;
  const current = shown.value;
  const Page = current?.page;
  return (
    <div class="frame" data-colour={environment.value?.colour}>
      <a class="skip" href="#content" onClick={toContent}>
        Skip to the content
      </a>
      <Rail current={current?.entry ?? null} open={railOpen} />
      <div class="main">
        <header class="top">
          <button
            type="button"
            class="burger"
            aria-label="Pages"
            aria-expanded={railOpen.value}
            aria-controls="rail"
            onClick={() => (railOpen.value = !railOpen.value)}
          >
            ☰
          </button>
          <Badge />
          <QueryBar />
          <Live />
          <LiveStatus />
        </header>
        <main id="content" tabIndex={-1} aria-label={title.value}>
          {missing.value ? (
            <p class="lone">There is no page at this address. Press Ctrl-K to go somewhere.</p>
          ) : Page && current && me.value ? (
            <Boundary key={place.value.path}>
              <Page params={current.params} />
            </Boundary>
          ) : !me.value && unmet.value ? (
            <>
              <Head title={title.value} />
              <ProblemView problem={unmet.value} />
            </>
          ) : (
            <Loading />
          )}
        </main>
      </div>
      <Toasts />
      <Palette />
      <NameView />
      <Help />
    </div>
  );
}
