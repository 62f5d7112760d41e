import { Head } from "../../parts/page";
import type { PageProps } from "../registry";

export default function Page({ params }: PageProps) {
  return <Head title={params["id"] ?? "Now"} />;
}
