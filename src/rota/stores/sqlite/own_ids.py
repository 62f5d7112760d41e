"""What SQLite keeps beside the runs: ids that submitters gave, callbacks and fans."""

from collections.abc import Sequence

import msgspec
from msgspec.structs import astuple

from rota.domain.fan import Fan
from rota.domain.run import CallbackRun
from rota.stores.sqlite import statements as sql
from rota.stores.sqlite.rows import to_json
from rota.stores.sqlite.threads import Transaction

_callbacks = msgspec.json.Decoder(list[CallbackRun])


class SqliteOwnIds:
    """A part of SqliteBook, which has these attributes."""

    _tx: Transaction
    _fans: dict[str, Fan | None]

    def fingerprint(self, id: str) -> str | None:
        found: str | None = self._tx.one("SELECT fingerprint FROM ids WHERE id = ?", id)
        return found

    def keep_callbacks(self, run: str, callbacks: Sequence[CallbackRun]) -> None:
        self._tx.execute("INSERT OR IGNORE INTO callbacks VALUES (?, ?)", run, to_json(callbacks))

    def take_callbacks(self, run: str) -> Sequence[CallbackRun]:
        found = self._tx.one("SELECT calls FROM callbacks WHERE run = ?", run)
        self._tx.execute("DELETE FROM callbacks WHERE run = ?", run)
        return [] if found is None else _callbacks.decode(found)

    def fan(self, id: str) -> Fan | None:
        if id not in self._fans:
            found = self._tx.one(f"{sql.FANS} WHERE id = ?", id)
            self._fans[id] = None if found is None else Fan(*msgspec.json.decode(found))
        return self._fans[id]

    def put_fan(self, fan: Fan) -> None:
        self._fans[fan.id] = fan

    def keep_fingerprint(self, id: str, fingerprint: str) -> None:
        self._tx.execute("INSERT INTO ids (id, fingerprint) VALUES (?, ?)", id, fingerprint)

    def flush_fans(self) -> None:
        if self._fans:
            rows = [astuple(fan) for fan in self._fans.values() if fan is not None]
            self._tx.executemany("INSERT OR REPLACE INTO fans VALUES (?, ?, ?, ?, ?, ?)", rows)
            self._fans = {}
