"""Settings, asked for what they say."""

from collections.abc import Callable

import pytest

from rota.errors import InvalidOptions
from rota.settings import explain, load

Write = Callable[[str], None]


def refusal(**keywords: object) -> str:
    """The one sentence with which these settings are refused."""
    with pytest.raises(InvalidOptions) as caught:
        load(**keywords)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def source(name: str, **keywords: object) -> str:
    return {row[0]: row[2] for row in explain(load(**keywords))}[name]
