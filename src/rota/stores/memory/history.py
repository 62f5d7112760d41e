"""Ended runs per task, in the order of their ends, so that the oldest are found without a search."""

import heapq
from collections import deque
from collections.abc import Callable, Mapping
from itertools import islice

from rota.domain.run import Run, State
from rota.domain.spec import TaskSpec
from rota.store import ID_MEMORY, Retention
from rota.stores.bounds import LEDGER

Ended = deque[tuple[float, int, str]]
"""(finished_at, number of the ending, run id)"""


class History:
    def __init__(self) -> None:
        self._ended: dict[str, dict[bool, Ended]] = {}
        self._removed: set[str] = set()
        self.count = 0
        self._endings = 0

    def add(self, run: Run) -> None:
        lists = self._ended.get(run.task)
        if lists is None:
            lists = self._ended[run.task] = {True: deque(), False: deque()}
        self._endings += 1
        lists[run.state is State.SUCCEEDED].append((run.finished_at or 0.0, self._endings, run.id))
        self.count += 1

    def remove(self, id: str) -> None:
        """Forget one run before its time. Its entry is skipped from now on."""
        self._removed.add(id)
        self.count -= 1

    def forget(
        self,
        retention: Retention,
        now: float,
        specs: Mapping[str, TaskSpec],
        is_kept: Callable[[str], bool] | None = None,
    ) -> list[str]:
        """Remove the runs that `retention`, or their task, no longer keeps, LEDGER.forgotten at most. Return their
        ids. Runs that `is_kept` names stay."""
        gone: list[str] = []
        for task, lists in self._ended.items():
            keep = (specs[task].keep if task in specs else None) or retention
            ages = {True: keep.succeeded, False: keep.failed}
            most, least = self._surplus(lists, keep.most), self._surplus(lists, keep.least)
            for succeeded, ended in lists.items():
                kept: Ended = deque()
                while ended and ended[0][0] <= now - ID_MEMORY and len(gone) < LEDGER.forgotten:
                    if ended[0][2] in self._removed:
                        self._removed.discard(ended.popleft()[2])
                        continue
                    too_old = ended[0][0] <= now - ages[succeeded] and ended[0][1] <= least
                    if not too_old and ended[0][1] > most:
                        break
                    entry = ended.popleft()
                    if is_kept is not None and is_kept(entry[2]):
                        kept.append(entry)
                    else:
                        gone.append(entry[2])
                ended.extendleft(reversed(kept))
        self.count -= len(gone)
        return gone

    def _surplus(self, lists: dict[bool, Ended], keep: int) -> int:
        """Return the number of the newest ending that is beyond the `keep` newest ones; 0 if there is none."""
        newest = heapq.merge(*(reversed(ended) for ended in lists.values()), reverse=True)
        kept = (order for _, order, id in newest if id not in self._removed)
        return next(islice(kept, keep, None), 0)
