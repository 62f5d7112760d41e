"""Tasks whose calls hold the interpreter for as long as a test wants."""

import mmap
import os
import sys
from pathlib import Path

from rota import Rota
from tests.lines import print_line

app = Rota(os.environ["ROTA_URL"], name="holder")


@app.task
def hold(flag: str) -> str:
    """Nobody else gets the interpreter lock before the first byte of that file is set: reading shared memory does not
    let go of the lock, and nobody asks for it before the switch interval is over."""
    print_line(f"CALLED by {os.getpid()}")
    usual = sys.getswitchinterval()
    with Path(flag).open("rb") as file, mmap.mmap(file.fileno(), 1, prot=mmap.PROT_READ) as memory:
        sys.setswitchinterval(1e6)
        try:
            while not memory[0]:
                pass
        finally:
            sys.setswitchinterval(usual)
    return "done"


@app.task
def rest(flag: str) -> str:
    """The same, but without the lock and at rest."""
    print_line(f"CALLED by {os.getpid()}")
    with Path(flag).open("rb") as pipe:
        pipe.read(1)
    return "done"
