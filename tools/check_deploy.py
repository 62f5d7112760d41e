"""Check deploy/ with the tools of those who will read it: `make check-deploy`.

promtool, kubectl and systemd-analyze are programs of the machine. promtool is fetched as a Debian package if it is
missing; without kubectl or systemd-analyze one line says what was not checked. The other checkers are pinned in
requirements/deploy.txt.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.debian import Debian, NotFetched

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
CACHE = ROOT / ".cache" / "promtool"
BIN = Path(sys.executable).parent
YAMLLINT = (
    "{extends: default, rules: {line-length: {max: 120}, document-start: disable, truthy: disable,"
    " braces: {max-spaces-inside: 1}, comments: {min-spaces-from-content: 1}}}"
)


class Wrong(Exception):
    """What a checker found."""


def ran(*words: str | Path, cwd: Path = ROOT) -> str:
    done = subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True, check=False)
    said = f"{done.stdout}{done.stderr}".strip()
    if done.returncode:
        raise Wrong(f"$ {' '.join(Path(str(word)).name for word in words)}\n{said}")
    return said


def promtool() -> Path:
    """Return promtool of the machine, else of Debian's package, which needs no root to be fetched and unpacked."""
    found = shutil.which("promtool")
    here = CACHE / "root" / "usr" / "bin" / "promtool"
    if found is not None or here.exists():
        return Path(found) if found else here
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        raise Wrong("there is no promtool, and no apt-get to fetch it: install prometheus")
    try:
        Debian(CACHE).fetch(["prometheus"])
    except NotFetched as error:
        raise Wrong(f"promtool: {error}") from None
    return here


def rules() -> str:
    tool, folder = promtool(), DEPLOY / "prometheus"
    ran(tool, "check", "rules", *sorted(folder.glob("rota.*s.yml")))
    ran(tool, "check", "config", "--syntax-only", folder / "prometheus.yml")
    ran(tool, "test", "rules", *sorted(folder.glob("*.test.yml")))
    return "promtool"


def metrics() -> str:
    """Hold what /metrics answers to the rules of Prometheus."""
    scraped = ran(sys.executable, "-c", SCRAPE)
    done = subprocess.run([str(promtool()), "check", "metrics"], input=scraped + "\n", capture_output=True, text=True)
    # promtool would like counters to be told apart by their names alone; it says nothing else.
    said = [line for line in done.stderr.splitlines() if line]
    if said:
        raise Wrong("\n".join(said))
    return "promtool check metrics"


SCRAPE = """
import asyncio
from prometheus_client import generate_latest
from rota import Rota
from rota.store import ClaimRequest, Report, Tally
from rota.web.metrics import registry

async def main():
    app = Rota("memory://")
    async with app.client() as client:
        store = await client.store()
        tally = Tally("add", 2, 1, lost=1, durations={20: 2}, ran=7, waits={0: 3}, waited=3)
        await store.claim(ClaimRequest("ada", 1, ["add"], 0, 30, Report(version="9", seats=4, tallies=(tally,))))
        print(generate_latest(await registry(client)).decode())

asyncio.run(main())
"""


def board() -> str:
    ran(sys.executable, "-m", "tools.board", "--check")
    json.loads((DEPLOY / "grafana" / "rota.json").read_text())
    return "board"


def image() -> str:
    ran(BIN / "hadolint", DEPLOY / "Dockerfile")
    return "hadolint"


def compose() -> str:
    files = (DEPLOY / "compose.yaml", ROOT / "examples" / "agent_platform" / "compose.yaml")
    ran(BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", *files)
    return "check-jsonschema"


def yaml() -> str:
    ran(BIN / "yamllint", "--strict", "-d", YAMLLINT, DEPLOY, *sorted((ROOT / "examples").rglob("*.yaml")))
    return "yamllint"


def kubernetes() -> str:
    """Validate the base as it is, and everything as kubectl renders it."""
    base = DEPLOY / "kubernetes" / "base"
    plain = [path for path in sorted(base.glob("*.yaml")) if path.name != "kustomization.yaml"]
    if shutil.which("kubectl") is None:
        ran(BIN / "kubernetes-validate", "--strict", *plain)
        return "kubernetes-validate (kubectl is not on this machine: the overlays were not rendered)"
    with tempfile.TemporaryDirectory() as place:
        rendered = Path(place) / "base.yaml"
        rendered.write_text(ran("kubectl", "kustomize", base))
        ran(BIN / "kubernetes-validate", "--strict", *plain, rendered)
    for overlay in sorted(base.parent.iterdir()):
        ran("kubectl", "kustomize", overlay)
    return "kubernetes-validate, kubectl kustomize"


def systemd() -> str:
    if shutil.which("systemd-analyze") is None:
        return "systemd-analyze is not on this machine: the units were not checked"
    with tempfile.TemporaryDirectory() as place:
        for unit in sorted((DEPLOY / "systemd").glob("*.service")):
            copy = Path(place) / unit.name
            copy.write_text(unit.read_text().replace("/opt/rota/bin/rota", "/bin/true").replace("/opt/app", "/"))
            if said := ran("systemd-analyze", "verify", copy):
                raise Wrong(f"{unit.name}: {said}")
            ran("systemd-analyze", "security", "--offline=true", "--threshold=20", copy)
    return "systemd-analyze"


def shell() -> str:
    ran(BIN / "shellcheck", ROOT / ".ci" / "run", *sorted((ROOT / "examples").rglob("*.sh")))
    return "shellcheck"


CHECKS: Sequence[Callable[[], str]] = (rules, metrics, board, image, compose, yaml, kubernetes, systemd, shell)


def results() -> Iterator[tuple[bool, str]]:
    with ThreadPoolExecutor(2) as pool:
        for check, doing in [(check, pool.submit(check)) for check in CHECKS]:
            try:
                yield True, doing.result()
            except Wrong as wrong:
                yield False, f"{check.__name__}: {wrong}"


def main() -> int:
    try:
        promtool()  # fetched once, before the checks that share it
    except Wrong as wrong:
        print(wrong)
        return 1
    well = True
    for good, words in results():
        print(words if good else f"FAILED {words}")
        well = well and good
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
