"""`python -m examples.context_app` plays a day; `… serve [PORT]` serves the API in real time, on 127.0.0.1."""

import logging
import sys
from collections import Counter

import uvicorn

from examples.context_app.story import Story, a_day
from examples.journal import journal


def play() -> None:
    logging.getLogger("rota").setLevel(logging.CRITICAL)  # the journal says it shorter
    story = Story().play(a_day)
    for line in journal(story.journal):
        print(line)
    print()
    kinds = ("task_type", "user_key", "trigger_mode", "success")
    for (task, key, mode, success), times in sorted(
        Counter(tuple(e[k] for k in kinds) for e in story.executions).items()
    ):
        print(f"{task:18} {key:21} {mode:13} {'success' if success else 'failure'}  {times}")


def main(arguments: list[str]) -> int:
    match arguments:
        case []:
            play()
        case ["serve"]:
            uvicorn.run("examples.context_app.api:api", port=8000)
        case ["serve", port] if port.isdecimal():
            uvicorn.run("examples.context_app.api:api", port=int(port))
        case _:
            print(__doc__)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
