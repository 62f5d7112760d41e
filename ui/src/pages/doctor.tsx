import { ask } from "../api/client";
import { useResource } from "../api/resource";
import type { Check } from "../api/types";
import { counted } from "../app/format";
import { CopyButton } from "../parts/copy";
import { Show } from "../parts/empty";
import { Head } from "../parts/page";
import { Sentence } from "../parts/sentence";
import "../styles/doctor.css";

const ORDER = ["fail", "warn", "ok"];
const WORDS: Record<string, [string, string]> = { fail: ["✕", "wrong"], warn: ["!", "look at it"], ok: ["✓", "fine"] };

/** Checks of the store and the settings, the worst first, each with what to do. */
export default function DoctorPage() {
  const checks = useResource("doctor", (signal) => ask("GET /doctor", { signal }));
  return (
    <Show of={checks} title="Doctor">
      {({ items }) => (
        <>
          <Head title="Doctor" about={aboutOf(items)}>
            <CopyButton text={items.map(lineOf).join("\n")} label="Copy all" />
            <button type="button" class="small" onClick={checks.reload}>
              {checks.loading.value ? "Checking …" : "Check again"}
            </button>
          </Head>
          <ul class="checks">
            {[...items].sort((one, two) => ORDER.indexOf(one.verdict) - ORDER.indexOf(two.verdict)).map((check) => (
              <li key={check.check + check.detail} data-verdict={check.verdict}>
                <span class="verdict">
                  <span aria-hidden="true">{WORDS[check.verdict]?.[0]}</span> {WORDS[check.verdict]?.[1]}
                </span>
                <strong>{check.check}</strong>
                <div>
                  <Sentence text={check.detail} copies={false} />
                  {check.advice && (
                    <p class="advice">
                      <Sentence text={check.advice} />
                    </p>
                  )}
                </div>
              </li>
            ))}
          </ul>
        </>
      )}
    </Show>
  );
}

function aboutOf(items: readonly Check[]): string {
  const bad = items.filter((check) => check.verdict === "fail").length;
  const warn = items.filter((check) => check.verdict === "warn").length;
  if (bad) return `${counted(bad, "check")} failed${warn ? `, ${counted(warn, "warning")}` : ""}.`;
  return warn ? `${counted(warn, "warning")}; the rest of ${counted(items.length, "check")} is fine.` : `All ${counted(items.length, "check")} are fine.`;
}

function lineOf(check: Check): string {
  return `${check.verdict.padEnd(4)} ${check.check}: ${check.detail}${check.advice ? ` -> ${check.advice}` : ""}`;
}
