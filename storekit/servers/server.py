"""Server: start, wait until ready, freeze, stop, kill, start again on the same data, close."""

import shutil
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Protocol, Self

from storekit.servers.places import Address, private_folder
from storekit.servers.process import PATIENCE, GuardedProcess, ServerFailed


class HasUrl(Protocol):
    """What a test of a store needs of a server."""

    @property
    def url(self) -> str: ...


class Server(ABC):
    """A real server in a private folder. It starts and ends with its `with`.

    It is ready when `start` returns. It ends with the process that started it, even if that process is killed. All
    calls block: in an event loop, use `asyncio.to_thread`.
    """

    graceful: ClassVar[signal.Signals] = signal.SIGTERM
    ending: ClassVar[signal.Signals] = signal.SIGKILL

    def __init__(self, name: str, account: int | None = None) -> None:
        self.name = name
        self.account = account
        self.folder = private_folder(name, account)
        self._process: GuardedProcess | None = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    @abstractmethod
    def address(self) -> Address:
        """The address of the server. It stays the same after a restart."""

    @property
    def url(self) -> str:
        return self.url_at(self.address)

    @abstractmethod
    def url_at(self, address: Address) -> str:
        """Return the URL of the server through another address, for example that of a proxy."""

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.running

    @property
    def pid(self) -> int:
        return self._started.pid

    @property
    def log(self) -> str:
        """The whole log of the server, over all its starts."""
        return self._log_file.read_text(errors="replace") if self._log_file.exists() else ""

    def start(self) -> None:
        """Start the server on its data and wait until it answers."""
        if self.running:
            raise ServerFailed(f"{self.name} is running already.")
        self._prepare()
        self._process = GuardedProcess(self._command(), self.folder, self._log_file, self.account, self.ending)
        self.wait_until(self._is_ready, "answer")

    def stop(self) -> None:
        """Stop the server in an orderly way, which disconnects its clients."""
        self._started.thaw()
        self._started.signal(self.graceful)
        self._started.wait()

    def kill(self) -> None:
        """Kill the server and all its processes with SIGKILL."""
        self._started.kill()
        self._started.wait()

    def restart(self) -> None:
        self.stop()
        self.start()

    def freeze(self) -> None:
        """Freeze all processes of the server (SIGSTOP): connections stay open and nothing answers."""
        self._started.freeze()

    def thaw(self) -> None:
        self._started.thaw()

    def close(self) -> None:
        """Stop the server if it runs, and remove its folder. It cannot be started again."""
        if self._process is not None:
            self._process.unregister()
        shutil.rmtree(self.folder, ignore_errors=True)

    def wait_until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until `holds()` is true. If the server ends or it takes too long, raise an error with the log."""
        deadline = time.monotonic() + PATIENCE
        while not holds():
            if not self.running:
                raise ServerFailed(f"{self.name} ended before it could {what}.\n{self._started.log_tail()}")
            if time.monotonic() > deadline:
                raise ServerFailed(f"{self.name} did not {what} in {PATIENCE:g} s.\n{self._started.log_tail()}")
            time.sleep(0.005)

    @property
    def _log_file(self) -> Path:
        return self.folder / "log"

    @property
    def _started(self) -> GuardedProcess:
        if self._process is None:
            raise ServerFailed(f"{self.name} was never started.")
        return self._process

    @abstractmethod
    def _prepare(self) -> None:
        """Write the files that the server needs into its folder. Called before each start."""

    @abstractmethod
    def _command(self) -> list[str]: ...

    @abstractmethod
    def _is_ready(self) -> bool: ...
