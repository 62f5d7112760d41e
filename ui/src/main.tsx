import { render } from "preact";
import "./styles/base.css";
import "./styles/frame.css";
import "./styles/parts.css";
import { startStream } from "./api/stream";
import { startClock } from "./app/clock";
import { Frame } from "./app/frame";
import { startKeys } from "./app/keys";
import { startPreferences } from "./app/preferences";
import { startRouter } from "./app/router";
import { begin } from "./app/session";

startPreferences();
startRouter();
startKeys();
startClock();
void begin().then(startStream);

const room = document.getElementById("room");
if (room) render(<Frame />, room);
