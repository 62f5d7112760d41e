import { useSignal } from "@preact/signals";
import { place, setQuery } from "../app/router";

export interface FilterField {
  name: string;
  label: string;
  placeholder?: string;
  values?: readonly string[];
}

/** The filter of a list: fields whose values are in the address. */
export function Filters({ fields }: { fields: readonly FilterField[] }) {
  const query = place.value.query;
  return (
    <form
      class="filters"
      role="search"
      aria-label="Filter"
      key={fields.map((field) => query.get(field.name) ?? "").join("\n")}
      onSubmit={(event) => {
        event.preventDefault();
        const entered = new FormData(event.currentTarget);
        setQuery(Object.fromEntries(fields.map((field) => [field.name, String(entered.get(field.name) ?? "").trim() || null])), false);
      }}
    >
      {fields.map((field) => (
        <One key={field.name} field={field} first={query.get(field.name) ?? ""} />
      ))}
      <button type="submit" class="small">
        Filter
      </button>
      {fields.some((field) => query.has(field.name)) && (
        <button type="button" class="small quiet" onClick={() => setQuery(Object.fromEntries(fields.map((field) => [field.name, null])), false)}>
          Show all
        </button>
      )}
    </form>
  );
}

function One({ field, first }: { field: FilterField; first: string }) {
  const text = useSignal(first);
  const id = `filter-${field.name}`;
  return (
    <div class="field">
      <label for={id}>{field.label}</label>
      <input
        id={id}
        name={field.name}
        type="text"
        autocomplete="off"
        spellcheck={false}
        placeholder={field.placeholder}
        list={field.values ? `${id}-list` : undefined}
        value={text.value}
        onInput={(event) => (text.value = event.currentTarget.value)}
      />
      {field.values && (
        <datalist id={`${id}-list`}>
          {field.values.map((each) => (
            <option key={each} value={each} />
          ))}
        </datalist>
      )}
    </div>
  );
}
