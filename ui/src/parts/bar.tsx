/** A choice that is part of the address: one of a few views of a page. */
export function Views<T extends string>({ label, of, chosen, onChoose }: { label: string; of: readonly (readonly [T, string])[]; chosen: T; onChoose: (value: T) => void }) {
  return (
    <div class="row views" role="group" aria-label={label}>
      {of.map(([value, name]) => (
        <button key={value} type="button" class="small" aria-pressed={value === chosen} onClick={() => onChoose(value)}>
          {name}
        </button>
      ))}
    </div>
  );
}
