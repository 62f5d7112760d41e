import type { ComponentChildren } from "preact";
import { CopyButton } from "./copy";
import { RunLink } from "./link";
import { Time } from "./time";

const INSTANT = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?\+00:00$/;
const PIECES = /(`[^`]+`|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?\+00:00|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b)/;

/** A sentence of the service: commands in it can be copied, ids of runs are links, instants are in the zone of the reader. */
export function Sentence({ text, copies = true }: { text: string; copies?: boolean }) {
  return <>{text.split(PIECES).map((piece, index) => pieceOf(piece, index, copies))}</>;
}

/** A sentence begins with a capital, unless it begins with the name of what it is about. */
export function capital(text: string, name: string): string {
  const first = name.split(" ", 1)[0] as string;
  return text.startsWith(first) ? text : text.charAt(0).toUpperCase() + text.slice(1);
}

function pieceOf(piece: string, index: number, copies: boolean): ComponentChildren {
  if (piece.startsWith("`")) {
    const command = piece.slice(1, -1);
    return (
      <span key={index}>
        <code>{command}</code>
        {copies && command.startsWith("rota ") && (
          <>
            {" "}
            <CopyButton text={command} />
          </>
        )}
      </span>
    );
  }
  if (INSTANT.test(piece)) return <Time key={index} at={piece.replace(" ", "T")} />;
  return index % 2 ? <RunLink key={index} id={piece} /> : piece;
}
