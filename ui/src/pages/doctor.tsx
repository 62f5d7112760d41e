import { ask } from "../api/client";
import { useResource } from "../api/resource";
import { Show } from "../parts/empty";
import { Head } from "../parts/page";
import { Table } from "../parts/table";

export default function DoctorPage() {
  const checks = useResource("doctor", (signal) => ask("GET /doctor", { signal }));
  return (
    <>
      <Head title="Doctor" about="Checks of the store and the settings, with advice." />
      <Show of={checks}>
        {(found) => (
          <Table
            label="Checks"
            rows={found.items}
            keyOf={(check) => check.check + check.detail}
            columns={[
              { name: "", cell: (check) => <span data-verdict={check.verdict}>{check.verdict}</span> },
              { name: "check", cell: (check) => check.check },
              { name: "found", wide: true, cell: (check) => check.detail },
              { name: "advice", cell: (check) => check.advice ?? "" },
            ]}
          />
        )}
      </Show>
    </>
  );
}
