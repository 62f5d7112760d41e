"""The app: what is done some time after a user was active, and what is done for everybody every hour."""

import logging

from fastapi import Depends

from examples.context_app.memories import Memories, Model, open_memories, the_model
from rota import Activity, Breaker, Context, Every, Rota, UserKey

log = logging.getLogger("context_app")

USER = UserKey(default_device="web", default_agent="assistant")
"""`user:device:agent`, with the names of a device and an agent that the caller does not give."""

app = Rota(name="context_app", concurrency=5, fail_on=lambda answer: answer is False)


@app.task(
    activity=Activity(after=1800, key=USER, breaker=Breaker(3), expires=7200),
    timeout=300,
    description="Summarise what a user has pushed.",
)
async def hierarchy_summary(
    ctx: Context,
    user_id: str,
    device_id: str | None = None,
    agent_id: str | None = None,
    memories: Memories = Depends(open_memories),
    model: Model = Depends(the_model),
) -> bool:
    """Answer True for success and False for failure, as the handlers of the app always did."""
    key = USER.build(user_id, device_id, agent_id)
    log.info("hierarchy_summary %s begins, attempt %d", key, ctx.attempt)
    summary = await model.summarise(memories.texts(key))
    if summary is None:
        log.info("hierarchy_summary %s: the model does not answer", key)
        return False
    memories.keep_summary(key, summary)
    log.info("hierarchy_summary %s: %s", key, summary)
    return True


@app.task(
    activity=Activity(after=600, key="{user_id}", mode="debounce", max_wait=3600),
    timeout=300,
    description="Compress the memory of a user who has gone quiet.",
)
async def memory_compression(user_id: str, memories: Memories = Depends(open_memories)) -> bool:
    """For all devices and agents of a user: its key has the user alone."""
    gone = memories.compress(USER.build(user_id).partition(":")[0] + ":")
    log.info("memory_compression %s: %d texts were there twice", user_id, gone)
    return True


@app.task(schedule=Every(3600), timeout=300, description="Forget old texts, for all users.")
async def data_cleanup(memories: Memories = Depends(open_memories)) -> int:
    """A periodic task gets no user."""
    return memories.forget(texts=100)
