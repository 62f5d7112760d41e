import type { Signal } from "@preact/signals";
import { density, DENSITIES, theme, THEMES, zone, ZONES } from "../app/preferences";
import { logout, me } from "../app/session";
import { Head } from "../parts/page";
import { Time } from "../parts/time";

export default function MePage() {
  const who = me.value;
  return (
    <>
      <Head title={who?.name ?? "Me"} about={who?.expires ? <>The token ends <Time at={who.expires} /></> : "The token does not end."}>
        <button type="button" onClick={() => void logout()}>
          Log out
        </button>
      </Head>
      <div class="form">
        <p>
          Rights: {who?.rights.map((right) => <code key={right}>{right} </code>)}
          {who?.tasks.length ? `, for the tasks ${who.tasks.join(", ")}` : ""}
        </p>
        <Choice name="Theme" of={theme} values={THEMES} />
        <Choice name="Times in" of={zone} values={ZONES} />
        <Choice name="Density" of={density} values={DENSITIES} />
      </div>
    </>
  );
}

function Choice<T extends string>({ name, of, values }: { name: string; of: Signal<T>; values: readonly T[] }) {
  return (
    <fieldset class="choice">
      <legend>{name}</legend>
      {values.map((value) => (
        <label key={value}>
          <input type="radio" name={name} checked={of.value === value} onChange={() => (of.value = value)} /> {value}
        </label>
      ))}
    </fieldset>
  );
}
