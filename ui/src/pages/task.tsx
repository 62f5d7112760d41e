import { ask } from "../api/client";
import { useResource } from "../api/resource";
import { hrefOf } from "../app/router";
import { Show } from "../parts/empty";
import { WhyLink } from "../parts/link";
import { Head } from "../parts/page";
import type { PageProps } from "./registry";

export default function TaskPage({ params }: PageProps) {
  const name = params["name"] ?? "";
  const task = useResource(name, (signal) => ask("GET /tasks/{name}", { path: { name }, signal }), ["tasks", "depths"]);
  return (
    <Show of={task}>
      {(found) => (
        <>
          <Head title={found.task} about={found.description}>
            <a class="button" href={hrefOf("/runs", { task: found.task })}>
              Runs
            </a>
            <WhyLink subject={found.task} />
          </Head>
          <pre class="json" tabIndex={0}>{JSON.stringify(found, null, 2)}</pre>
        </>
      )}
    </Show>
  );
}
