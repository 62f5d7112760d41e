import { place, setQuery } from "../../app/router";
import { may } from "../../app/session";
import { Views } from "../../parts/bar";
import { Head } from "../../parts/page";
import "../../styles/operations.css";
import { Audit } from "./audit";
import { Operations } from "./operations";

/** Actions on many runs, with their progress; and who changed what, when, from where and why. */
export default function OperationsPage() {
  const audited = place.value.query.get("view") === "audit" && may("operate");
  return (
    <>
      <Head title="Operations" about={audited ? "Who changed what, when, from where and why. The latest is first." : "Actions on all runs that a filter finds. What can be undone can be undone for a day."}>
        {may("operate") && <Views label="View" of={[["operations", "Operations"], ["audit", "Audit"]]} chosen={audited ? "audit" : "operations"} onChoose={(value) => setQuery({ view: value === "audit" ? value : null, by: null, action: null, subject: null })} />}
      </Head>
      {audited ? <Audit /> : <Operations />}
    </>
  );
}
