"""The parent of one server: does as told on stdin, and ends the server when whoever told it is gone.

Runs as a script of its own, with nothing but the standard library. A pipe rather than PR_SET_PDEATHSIG, because that
signal comes when the *thread* dies which started the server, and a restart in `asyncio.to_thread` is natural in a
test. Being the parent also makes signals exact: a pid is never reused before this process has reaped it.
"""

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time

PATIENCE = 5.0
"""Seconds a server has to end or to stop when told; then it is killed, or taken for stopped."""


def main() -> int:
    order = json.loads(sys.argv[1])
    told, tell = os.pipe()
    os.set_blocking(tell, False)
    signal.signal(signal.SIGCHLD, noticed)
    signal.set_wakeup_fd(tell)
    account = order["account"]
    with open(order["log"], "ab") as log:
        server = subprocess.Popen(
            order["command"],
            cwd=order["folder"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            user=account,
            group=account,
            extra_groups=None if account is None else [],
        )
    say(str(server.pid))
    while True:
        ready, _, _ = select.select([0, told], [], [])
        if told in ready:
            os.read(told, 4096)
        if (code := server.poll()) is not None:
            return code if code >= 0 else 128 - code
        if 0 in ready:
            words = os.read(0, 4096).split()
            if not words:
                end(server, order["ending"])
                shutil.rmtree(order["folder"], ignore_errors=True)
                return 0
            obey(server.pid, *map(bytes.decode, words))
            say("done")


def noticed(number: int, frame: object) -> None:
    """Nothing: a signal that is handled at all wakes the `select`."""


def say(word: str) -> None:
    with contextlib.suppress(BrokenPipeError):
        os.write(1, word.encode() + b"\n")


def obey(pid: int, verb: str, number: str = "0") -> None:
    if verb == "freeze":
        freeze(pid)
    elif verb == "thaw":
        thaw(pid)
    elif verb == "kill":
        kill(pid)
    else:
        os.kill(pid, int(number))


def end(server: "subprocess.Popen[bytes]", ending: int) -> None:
    """Ask the server to end in its quickest way; kill it with its children when it does not."""
    thaw(server.pid)
    os.kill(server.pid, ending)
    with contextlib.suppress(subprocess.TimeoutExpired):
        server.wait(PATIENCE)
        return
    kill(server.pid)
    server.wait()


def freeze(pid: int) -> None:
    # The parent first: a stopped one neither forks nor reaps, so that the list of its children stays true.
    stop(pid)
    for child in children(pid):
        stop(child)


def thaw(pid: int) -> None:
    for each in (*children(pid), pid):
        send(each, signal.SIGCONT)


def kill(pid: int) -> None:
    stop(pid)
    for each in (*children(pid), pid):
        send(each, signal.SIGKILL)


def stop(pid: int) -> None:
    send(pid, signal.SIGSTOP)
    deadline = time.monotonic() + PATIENCE
    while state(pid)[:1] not in ("T", "Z", "X", "") and time.monotonic() < deadline:
        time.sleep(0.001)


def send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def children(pid: int) -> list[int]:
    """The server's own child processes. Without /proc none are found: they end by themselves when it does."""
    entries = os.listdir("/proc") if os.path.isdir("/proc") else []
    return [int(entry) for entry in entries if entry.isdigit() and state(int(entry)).split()[1:2] == [str(pid)]]


def state(pid: int) -> str:
    """What follows the name in /proc/<pid>/stat: the state's letter, the parent, and more; empty if there is none."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(") ")[2]
    except OSError:
        return ""


if __name__ == "__main__":
    sys.exit(main())
