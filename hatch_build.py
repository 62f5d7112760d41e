"""The build hook: a wheel and an sdist hold the pages of the control room; an editable install builds nothing.

The sdist holds the built pages, so that a build from it needs no node.
"""

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent))

from tools import ui


class PagesHook(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        return [] if self._is_sdist() or ui.node_on_path() else [ui.wheel_pin()]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "editable" and not self._is_sdist() and not ui.is_fresh():
            ui.build()

    def _is_sdist(self) -> bool:
        return (Path(self.root) / "PKG-INFO").exists() and ui.INDEX.exists()
