"""The guard: the parent process of one server. It follows orders on stdin and ends the server when stdin is closed.

It is run as a script and needs only the standard library. It uses a pipe and not PR_SET_PDEATHSIG, because that signal
comes when the *thread* ends that started the server, and tests restart servers in `asyncio.to_thread`. As the parent it
can also signal safely: the pid is not reused before this process has reaped it.
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
"""Seconds that a server has to end or to stop; then it is killed, or counts as stopped."""


def main() -> int:
    order = json.loads(sys.argv[1])
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, noticed)
    signal.set_wakeup_fd(wake)
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
        ready, _, _ = select.select([0, woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
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
    """Do nothing: any handled signal wakes the `select`."""


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
    """Send the server the signal `ending`; kill it and its children if it does not end."""
    thaw(server.pid)
    os.kill(server.pid, ending)
    with contextlib.suppress(subprocess.TimeoutExpired):
        server.wait(PATIENCE)
        return
    kill(server.pid)
    server.wait()


def freeze(pid: int) -> None:
    # The parent first: a stopped parent neither forks nor reaps, so the list of its children stays complete.
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
    """Return the child processes of the server. Without /proc none are found; they end when the server ends."""
    entries = os.listdir("/proc") if os.path.isdir("/proc") else []
    return [int(entry) for entry in entries if entry.isdigit() and state(int(entry)).split()[1:2] == [str(pid)]]


def state(pid: int) -> str:
    """Return the part of /proc/<pid>/stat after the name: the letter of the state, the parent, and more; empty without
    such a process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(") ")[2]
    except OSError:
        return ""


if __name__ == "__main__":
    sys.exit(main())
