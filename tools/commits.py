"""Checks the messages of the commits since this check exists: subjects are short and imperative, and a commit that
changes the source says why.

Without a history to look at (a shallow clone, an sdist, no git), there is nothing to check, and the check passes.
"""

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
LONGEST = 72
NO_VERB = re.compile(r"(ed|ing|s)$")
"""How words end that are no imperative: added, adding, adds; also plural nouns."""
VERB = re.compile(r"(ss|eed)$")
"""How some imperatives end nevertheless: pass, process, need, speed."""
VERBS = {"alias", "always", "bring", "embed", "focus", "ping", "ring", "shed", "shred", "spring", "string", "swing"}
"""Other words that end like those of NO_VERB and may begin an imperative."""
EXCUSED: dict[str, str] = {}
"""Commits that others have already built on, by their full hash, and why their message stays as it is."""


@dataclass(frozen=True)
class Commit:
    hash: str
    subject: str
    body: str = ""
    touches_source: bool = False


def first_word(subject: str) -> str:
    """Return the first word after an optional area: of `cli: name the app` it is `name`.

    An area is at most two words before the first colon that a space follows.
    """
    area, colon, rest = subject.partition(": ")
    if colon and rest.strip() and len(area.split()) <= 2:
        subject = rest
    found = re.search(r"[^\W\d_]+", subject.split(maxsplit=1)[0]) if subject.strip() else None
    return found[0].lower() if found else ""


def is_imperative(subject: str) -> bool:
    """Whether the subject looks like an imperative: by the ending of its first word, and no dictionary."""
    word = first_word(subject)
    return bool(word) and (word in VERBS or bool(VERB.search(word)) or not NO_VERB.search(word))


def mistakes(commit: Commit) -> Iterator[str]:
    """Say what is wrong with the message of a commit, one sentence each."""
    is_revert = commit.subject.startswith('Revert "')  # git writes it, around a subject that was short enough
    if len(commit.subject) > LONGEST and not is_revert:
        yield f"the subject has {len(commit.subject)} characters, and {LONGEST} are the most"
    if not is_imperative(commit.subject):
        yield f"the subject is not an imperative (add, not added, adding or adds): {first_word(commit.subject)!r}"
    if commit.touches_source and not commit.body.strip():
        yield "the commit changes src/ and has no body: say why"


def git(root: Path, *words: str) -> str | None:
    """Return what git prints, None if git is missing or refuses."""
    try:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip("\n")


def base(root: Path) -> str | None:
    """Return the commit that added this check; None where that cannot be known.

    The history is asked and no hash is written down here: a commit cannot hold its own hash, and a rebase changes it.
    """
    top = git(root, "rev-parse", "--show-toplevel")
    if top is None or Path(top).resolve() != root.resolve():  # an sdist may lie inside a repository of somebody else
        return None
    if git(root, "rev-parse", "--is-shallow-repository") != "false":
        return None
    path = Path(__file__).relative_to(ROOT).as_posix()
    added = git(root, "log", "--no-renames", "--diff-filter=A", "--format=%H", "HEAD", "--", path)
    return added.splitlines()[-1] if added else None


def commits(root: Path) -> list[Commit]:
    """Return the commits since the base, newest first, without merges and without those that are excused."""
    start = base(root)
    if start is None:
        return []
    since = ("--no-merges", f"{start}..HEAD")
    source = set((git(root, "log", "--full-history", "--format=%H", *since, "--", "src") or "").split())
    records = (git(root, "log", "--format=%H%x00%s%x00%b%x01", *since) or "").split("\x01")
    found = [record.strip("\n").split("\x00") for record in records if record.strip()]
    return [Commit(id, subject, body.strip(), id in source) for id, subject, body in found if id not in EXCUSED]


def main(root: Path = ROOT) -> None:
    said = [
        f"{commit.hash[:10]} {commit.subject}\n  {mistake}" for commit in commits(root) for mistake in mistakes(commit)
    ]
    if said:
        raise SystemExit(
            "\n".join([*said, "Reword what nobody has built on yet: git rebase -i, or git commit --amend"])
        )


if __name__ == "__main__":
    main()
