"""What users push and what is made of it, in an SQLite file; and the model, in place of a real one."""

import asyncio
import os
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import closing
from dataclasses import dataclass

TABLES = """
CREATE TABLE IF NOT EXISTS pushed (user_key TEXT, text TEXT);
CREATE TABLE IF NOT EXISTS summaries (user_key TEXT PRIMARY KEY, text TEXT);
"""


class Memories:
    """The texts of users and their summaries, by user key."""

    def __init__(self, path: str) -> None:
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._db.executescript(TABLES)

    def close(self) -> None:
        self._db.close()

    def push(self, user_key: str, text: str) -> None:
        self._db.execute("INSERT INTO pushed VALUES (?, ?)", (user_key, text))

    def texts(self, user_key: str) -> list[str]:
        return [text for (text,) in self._db.execute("SELECT text FROM pushed WHERE user_key = ?", (user_key,))]

    def keep_summary(self, user_key: str, summary: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO summaries VALUES (?, ?)", (user_key, summary))

    def summary(self, user_key: str) -> str | None:
        found = self._db.execute("SELECT text FROM summaries WHERE user_key = ?", (user_key,)).fetchone()
        return None if found is None else str(found[0])

    def compress(self, prefix: str) -> int:
        """Forget texts that are there twice, of the keys that begin with `prefix`; return how many."""
        twice = "SELECT 1 FROM pushed AS newer WHERE (newer.user_key, newer.text) = (pushed.user_key, pushed.text)"
        return self._db.execute(
            f"DELETE FROM pushed WHERE substr(user_key, 1, ?) = ? AND EXISTS ({twice} AND newer.rowid > pushed.rowid)",
            (len(prefix), prefix),
        ).rowcount

    def forget(self, texts: int) -> int:
        """Forget all but the last `texts` texts of each user; return how many."""
        newer = (
            "SELECT count(*) FROM pushed AS other WHERE other.user_key = pushed.user_key AND other.rowid > pushed.rowid"
        )
        return self._db.execute(f"DELETE FROM pushed WHERE ({newer}) >= ?", (texts,)).rowcount


async def open_memories() -> AsyncGenerator[Memories]:
    """A dependency of FastAPI. Path functions and handlers take it alike."""
    with closing(Memories(os.environ.get("CONTEXT_DB", "context.db"))) as memories:
        yield memories


@dataclass
class Model:
    """Thinks for some seconds. Whoever plays the world lets it fall asleep."""

    seconds: float = 0.1
    asleep: bool = False

    async def summarise(self, texts: list[str]) -> str | None:
        """None while the model does not answer."""
        await asyncio.sleep(self.seconds)
        return None if self.asleep else f"{len(texts)} text{'s' * (len(texts) != 1)}, the last is {texts[-1]!r}"


MODEL = Model()


async def the_model() -> Model:
    return MODEL
