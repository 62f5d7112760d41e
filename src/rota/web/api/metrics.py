"""Metrics for Prometheus."""

from typing import Any

from prometheus_client.exposition import choose_encoder

from rota.store import Backend, OnServer
from rota.web.metrics import registry
from rota.web.own_metrics import OwnMetrics
from rota.web.rights import Right
from rota.web.routes import Answer, Call, NoQuery, Route, get
from rota.web.streams import Streams


async def metrics(call: Call[NoQuery, None]) -> Answer:
    """As text 0.0.4, or as OpenMetrics 1.0 if the caller accepts that."""
    encode, media_type = choose_encoder(call.request.headers.get("accept", ""))
    state = call.request.app.state
    streams: Streams = state.streams
    own: OwnMetrics = state.own_metrics
    shown = own.metrics(len(streams), streams.resyncs, _store(call.client.backend), state.labels)
    found = await registry(call.client, shown, state.labels)
    return Answer(encode(found), headers={"Content-Type": media_type})


def _store(backend: Backend) -> dict[str, str]:
    kind = type(backend).__name__.removesuffix("Backend").lower()
    return {"kind": kind, "version": backend.server_version if isinstance(backend, OnServer) else ""}


ROUTES: list[Route[Any, Any]] = [
    get("/metrics", "The metrics of the whole fleet, for Prometheus", Right.METRICS, metrics, str),
]
