"""axe-core: what a page has that people with a screen reader, a keyboard or weak eyes cannot use."""

import fcntl
import os
import subprocess
from functools import cache
from pathlib import Path

from playwright.async_api import Page

from tools.ui import find_node

HERE = Path(__file__).parent
FOLDER = HERE.parents[1] / ".cache" / "axe"
SCRIPT = FOLDER / "node_modules" / "axe-core" / "axe.min.js"
CHECK = """async () => (await axe.run(document, {resultTypes: ["violations"], runOnly: {type: "tag", values: [
    "wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}}))
    .violations.flatMap(v => v.nodes.map(n => `${v.id}: ${v.help}: ${n.html.slice(0, 200)} ${n.failureSummary}`))"""


@cache
def script() -> str:
    """The script of axe-core, fetched once from npm, pinned by the lock file beside this one."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name in ("package.json", "package-lock.json", ".npmrc"):
            wanted = (HERE / name).read_bytes()
            if not (FOLDER / name).exists() or (FOLDER / name).read_bytes() != wanted:
                SCRIPT.unlink(missing_ok=True)
                (FOLDER / name).write_bytes(wanted)
        if not SCRIPT.exists():
            node, npm = find_node()
            path = f"{Path(node).parent}{os.pathsep}{os.environ.get('PATH', '')}"
            command = [npm, "ci", "--loglevel=error"]
            subprocess.run(command, cwd=FOLDER, env={**os.environ, "PATH": path}, check=True, capture_output=True)
    return SCRIPT.read_text()


async def violations(page: Page) -> list[str]:
    """What axe finds on the page as it is now."""
    await page.evaluate(script())
    return [str(each) for each in await page.evaluate(CHECK)]
