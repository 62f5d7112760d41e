import type { Signal } from "@preact/signals";
import { heardAt, liveness, togglePause } from "../api/stream";
import { PAGES, type PageEntry } from "../pages/registry";
import { Badge } from "./badge";
import { now } from "./clock";
import { clockSkew } from "../api/client";
import { span } from "./format";
import { following, theme, THEMES, zone, ZONES } from "./preferences";
import { hrefOf } from "./router";
import { me } from "./session";
import { pathHere, views } from "./views";

const STALE = 20;

/** What the dot says: live, paused, reconnecting, or stale since when. */
export function livenessWords(): string {
  if (liveness.value === "paused") return "paused";
  const silent = (now.value - clockSkew.value - heardAt.value) / 1000;
  if (liveness.value === "live") return silent > STALE ? `stale since ${span(silent)}` : "live";
  return silent > 5 ? `stale since ${span(silent)}` : "reconnecting";
}

export function Rail({ current, open }: { current: PageEntry | null; open: Signal<boolean> }) {
  const lit = current?.under ?? current?.name;
  return (
    <nav class="rail" id="rail" aria-label="Pages" data-open={open.value}>
      <a class="brand" href={hrefOf("/")}>
        rota
      </a>
      <Badge />
      <ul>
        {PAGES.filter((page) => page.letter).map((page) => (
          <li key={page.name} class={page.begins ? "begins" : undefined}>
            <a href={hrefOf(page.path)} aria-current={page.name === lit ? "page" : undefined}>
              {page.name}
              <kbd aria-hidden="true">g {page.letter}</kbd>
            </a>
          </li>
        ))}
      </ul>
      {views.value.length > 0 && <Views />}
      <RailFoot />
    </nav>
  );
}

/** The views that somebody has saved in this browser. */
function Views() {
  return (
    <ul class="views" aria-label="Saved views">
      {views.value.map((view) => (
        <li key={view.name}>
          <a href={hrefOf(view.path)} title={view.path} aria-current={view.path === pathHere() ? "page" : undefined}>
            <span>{view.name}</span>
          </a>
        </li>
      ))}
    </ul>
  );
}

/** A button that says whether the page is live; on a phone, where the rail is out of sight, it stands above the page. */
export function Live() {
  const words = livenessWords();
  const state = words.startsWith("stale") ? "stale" : liveness.value;
  const does = liveness.value === "paused" ? "go on with live changes" : "pause live changes";
  document.documentElement.dataset["live"] = state;
  return (
    <button type="button" class="live" data-live={state} onClick={togglePause} aria-label={`${words}: ${does}`} title={`${does} (p)`}>
      <span class="dot" aria-hidden="true" />
      <span>{words}</span>
    </button>
  );
}

/** The same for screen readers, who hear of it when it changes: a button is no place for that. */
export function LiveStatus() {
  return (
    <span class="unseen" role="status">
      {livenessWords().replace(/ since .*/, "")}
    </span>
  );
}

function RailFoot() {
  return (
    <div class="railfoot">
      <Live />
      <div class="switches">
        <button type="button" title="Theme (t)" onClick={() => (theme.value = following(THEMES, theme.value))}>
          <span class="dim">theme</span> {theme.value}
        </button>
        <button type="button" title="Time zone (z)" onClick={() => (zone.value = following(ZONES, zone.value))}>
          <span class="dim">times</span> {zone.value === "utc" ? "UTC" : zone.value}
        </button>
      </div>
      <a class="who" href={hrefOf("/me")}>
        {me.value?.name ?? ""}
      </a>
    </div>
  );
}
