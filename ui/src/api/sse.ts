/** One message of a stream of server-sent events. */
export interface Message {
  event: string;
  data: string;
  id: string | null;
}

/**
 * Reads messages out of the text of a stream. EventSource is no help here: it hides heartbeats and statuses, and a new
 * one cannot go on after the last id of another.
 */
export class MessageReader {
  private rest = "";
  private event = "message";
  private data: string[] = [];
  private id: string | null = null;

  /** Return the messages that `text` has completed. */
  push(text: string): Message[] {
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop() ?? "";
    const found: Message[] = [];
    for (const line of lines) {
      if (line === "") {
        if (this.data.length || this.id !== null) {
          found.push({ event: this.data.length ? this.event : "", data: this.data.join("\n"), id: this.id });
        }
        this.event = "message";
        this.data = [];
        this.id = null;
      } else this.field(line.endsWith("\r") ? line.slice(0, -1) : line);
    }
    return found;
  }

  private field(line: string): void {
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "event") this.event = value;
    else if (name === "data") this.data.push(value);
    else if (name === "id") this.id = value;
  }
}
