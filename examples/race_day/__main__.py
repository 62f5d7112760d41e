"""`python -m examples.race_day` plays the day; `… live [SECONDS]` runs it in real time."""

import logging
import sys

from examples.journal import journal
from examples.race_day import live, page
from examples.race_day.story import Story, a_bad_day


def play() -> None:
    logging.getLogger("rota").setLevel(logging.CRITICAL)  # the journal says it shorter
    story = Story().play(a_bad_day)
    for line in journal(story.journal):
        print(line)
    print()
    for line in page.grid(story.seen):
        print(line)
    print()
    for line in page.counts(story.simulation.runs, ["odds", "ground_condition", "autochat", "watch_results"]):
        print(line)


def main(arguments: list[str]) -> int:
    match arguments:
        case []:
            play()
        case ["live"]:
            live.run()
        case ["live", seconds] if seconds.isdecimal():
            live.run(float(seconds))
        case _:
            print(__doc__)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
