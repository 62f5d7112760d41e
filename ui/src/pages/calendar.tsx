import { ask } from "../api/client";
import { useResource } from "../api/resource";
import { Empty, Show } from "../parts/empty";
import { Head } from "../parts/page";
import { ScheduleLink } from "../parts/link";
import { Table } from "../parts/table";
import { Time } from "../parts/time";

interface Fire {
  at: string;
  schedule: string;
  task: string;
}

export default function CalendarPage() {
  const preview = useResource("preview", (signal) => ask("GET /preview", { query: { days: 2 }, signal }), ["schedules"]);
  return (
    <>
      <Head title="Calendar" about="What will fire in the next two days." />
      <Show of={preview}>
        {(found) =>
          found.fires.length === 0 ? (
            <Empty title="Nothing will fire" command="rota schedules put nightly --cron '0 2 * * *' report" />
          ) : (
            <Table
              label="Fires to come"
              rows={(found.fires as Fire[]).slice(0, 500)}
              keyOf={(fire) => `${fire.at} ${fire.schedule}`}
              columns={[
                { name: "at", cell: (fire) => <Time at={fire.at} own={found.zone} /> },
                { name: "schedule", cell: (fire) => <ScheduleLink id={fire.schedule} /> },
                { name: "task", wide: true, cell: (fire) => fire.task },
              ]}
            />
          )
        }
      </Show>
    </>
  );
}
