"""Functions that jobs of other schedulers call."""

called: list[object] = []


def nightly(city: str = "", limit: int = 0) -> None:
    called.append((city, limit))


async def later() -> None:
    called.append("later")
