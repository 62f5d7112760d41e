"""The app of the measures over HTTP: one task that does nothing, and as many more as metrics are to be made of."""

import os

from rota import Rota

app = Rota()


@app.task
async def noop(i: int) -> None: ...


async def _one_of_many() -> None: ...


many = [app.task(name=f"task{n}")(_one_of_many) for n in range(int(os.environ.get("BENCH_TASKS", "500")))]
