"""The Python that runs a command as cron does. It is written into the code of an import, where a user may change it."""

PRELUDE = '''
async def shell(command: str, *, stdin: str = "", user: str = "", env: dict[str, str] | None = None) -> None:
    """Run a command as cron does: by /bin/sh, in the home directory, with a small environment. An exit code other than
    0 fails the run; the end of what the command printed is kept with it."""
    here = getpass.getuser()
    if user and user != here:
        raise RuntimeError(f"cron ran this as {user}, this worker is {here}: run a worker as {user}")
    home = str(Path.home())
    small = {"HOME": home, "LOGNAME": here, "USER": here, "PATH": "/usr/bin:/bin", "SHELL": "/bin/sh"} | (env or {})
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as given:
        given.write(stdin.encode())
        given.seek(0)
        process = await asyncio.create_subprocess_exec(
            *(small["SHELL"], "-c", command),
            stdin=given,
            stdout=output,
            stderr=asyncio.subprocess.STDOUT,
            cwd=small["HOME"],
            env=small,
            start_new_session=True,
        )
        try:
            code = await process.wait()
        except asyncio.CancelledError:  # a timeout, a cancel, or the stop of the worker
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            raise
        if code:
            output.seek(max(0, output.seek(0, os.SEEK_END) - 2000))
            raise RuntimeError(f"exit code {code}: {output.read().decode(errors='replace')}")
'''.strip().splitlines()

IMPORTS = (
    *("import asyncio", "import getpass", "import os", "import signal", "import tempfile"),
    *("from contextlib import suppress", "from pathlib import Path"),
)
