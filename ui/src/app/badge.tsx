import { environment } from "./session";

/** The environment by name and colour, wherever somebody is about to act: nobody means one and acts on another. */
export function Badge() {
  const place = environment.value;
  if (place === null) return null;
  const about = place.name === "demo" ? "Sample data of rota demo: nothing here is real." : `You act on ${place.name}.`;
  return (
    <span class="badge" data-colour={place.colour} title={about}>
      <span class="unseen">environment </span>
      {place.name}
    </span>
  );
}
