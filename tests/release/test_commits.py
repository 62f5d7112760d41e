"""Which messages of commits `make lint` refuses, and since when."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tools.commits import Commit, base, commits, first_word, git, is_imperative, main, mistakes

LONG = "Add " + "a" * 69


@pytest.mark.parametrize(
    ("subject", "word"),
    [
        ("Add make dist", "add"),
        ("cli: name the app", "name"),
        ("Decision 0020: explain it", "explain"),
        ("Add make chaos: faults of every kind", "add"),
        ("rota worker: refuse 5x", "refuse"),
        ("Say what keeps a run from its start: the rate", "say"),
        ("Tests:", "tests"),
        ("`rota why`: name it", "name"),
        ("(re)name it", "re"),
        ("3.14: add it", "add"),
        ("a::b is gone", "a"),
        ("", ""),
        ("123", ""),
    ],
)
def test_the_first_word_comes_after_an_optional_area(subject: str, word: str) -> None:
    assert first_word(subject) == word


@pytest.mark.parametrize(
    "subject",
    [
        "Add a page",
        "cli: Pass the app on",
        "Process one batch",
        "Need a driver",
        "Speed up claims",
        "Bring the runs in",
        "Embed the engine",
        "Ping the server",
        "Focus the docs",
        "Address what review found",
        'Revert "Added a page"',
        "Use thing-s",
    ],
)
def test_an_imperative_passes(subject: str) -> None:
    assert is_imperative(subject)


@pytest.mark.parametrize(
    "subject",
    ["Added a page", "cli: Adding a page", "adds a page", "Tests: fixes", "Settings for all", "Fixed", "", "12"],
)
def test_another_form_does_not_pass(subject: str) -> None:
    assert not is_imperative(subject)


def test_a_subject_has_at_most_72_characters() -> None:
    assert list(mistakes(Commit("h", LONG[:72]))) == []
    assert list(mistakes(Commit("h", LONG))) == ["the subject has 73 characters, and 72 are the most"]
    assert list(mistakes(Commit("h", "Ä" + LONG[1:72]))) == [], "characters, not bytes"
    assert list(mistakes(Commit("h", f'Revert "{LONG}"'))) == [], "git writes that subject"


def test_a_commit_that_changes_the_source_says_why() -> None:
    (said,) = mistakes(Commit("h", "Add it", " \n", touches_source=True))
    assert said == "the commit changes src/ and has no body: say why"
    assert list(mistakes(Commit("h", "Add it", "Because.", touches_source=True))) == []
    assert list(mistakes(Commit("h", "Add it"))) == []


# -- in a repository -----------------------------------------------------------------------------------------------


class Repository:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "Ada")
        self.git("config", "user.email", "ada@localhost")
        self.git("config", "commit.gpgsign", "false")

    def git(self, *words: str) -> str:
        done = git(self.folder, *words)
        assert done is not None, words
        return done

    def commit(self, message: str, path: str = "a.txt") -> str:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(message)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A repository whose second commit adds the check; the commit before would not pass it."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)  # a hook of git that runs the tests names its own repository
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    repository = Repository(tmp_path / "repository")
    repository.commit("Added what was there before", "src/rota/a.py")
    repository.commit("Adds the check", "tools/commits.py")
    return repository


def test_commits_are_checked_from_the_one_after_the_check_on(repository: Repository) -> None:
    assert commits(repository.folder) == []
    first = repository.commit("Add a file\n\nThe reason,\nin two lines.", "src/rota/b.py")
    second = repository.commit("Change the check", "tools/commits.py")
    assert commits(repository.folder) == [
        Commit(second, "Change the check"),
        Commit(first, "Add a file", "The reason,\nin two lines.", touches_source=True),
    ]
    main(repository.folder)


def test_a_wrong_message_fails_the_check_with_its_commit(repository: Repository) -> None:
    wrong = repository.commit("Adding a file", "src/rota/b.py")
    with pytest.raises(SystemExit) as failed:
        main(repository.folder)
    assert str(failed.value).splitlines()[:4] == [
        f"{wrong[:10]} Adding a file",
        "  the subject is not an imperative (add, not added, adding or adds): 'adding'",
        f"{wrong[:10]} Adding a file",
        "  the commit changes src/ and has no body: say why",
    ]


def test_a_commit_that_others_have_built_on_can_be_excused(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = repository.commit("Adding a file")
    monkeypatch.setattr("tools.commits.EXCUSED", {wrong: "published before anybody looked"})
    main(repository.folder)


def test_merges_are_exempt_and_what_they_merge_is_not(repository: Repository) -> None:
    repository.git("checkout", "-q", "-b", "side")
    side = repository.commit("Add on the side", "src/side.py")
    repository.git("checkout", "-q", "main")
    ours = repository.commit("Add on main", "b.txt")
    repository.git("merge", "-q", "--no-ff", "-m", "Merged the side", "side")
    assert {(commit.hash, commit.touches_source) for commit in commits(repository.folder)} == {
        (side, True),
        (ours, False),
    }


def test_a_shallow_clone_passes(repository: Repository, tmp_path: Path) -> None:
    repository.commit("Adding a file")
    repository.commit("Adding another", "b.txt")
    subprocess.run(
        ["git", "clone", "-q", "--depth", "1", f"file://{repository.folder}", tmp_path / "shallow"], check=True
    )
    assert base(tmp_path / "shallow") is None
    main(tmp_path / "shallow")


def test_a_folder_without_git_passes(tmp_path: Path) -> None:
    main(tmp_path)


def test_an_sdist_inside_another_repository_passes(repository: Repository) -> None:
    repository.commit("Vendored rota", "vendor/rota/tools/commits.py")
    repository.commit("Adding a file")
    main(repository.folder / "vendor" / "rota")


def test_a_check_that_was_removed_and_came_back_holds_from_its_first_day_on(repository: Repository) -> None:
    wrong = repository.commit("Adding a file")
    (repository.folder / "tools" / "commits.py").unlink()
    repository.commit("Remove the check", "b.txt")
    repository.commit("Add the check again", "tools/commits.py")
    assert wrong in {commit.hash for commit in commits(repository.folder)}


def test_a_history_without_the_check_passes(repository: Repository) -> None:
    repository.git("checkout", "-q", "-b", "old", "HEAD~1")
    repository.commit("Adding a file")
    main(repository.folder)


def test_a_machine_without_git_passes(repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.commit("Adding a file")
    assert shutil.which("git")
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    main(repository.folder)
