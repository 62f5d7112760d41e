"""Metrics for Prometheus."""

from typing import Any

from prometheus_client.exposition import choose_encoder

from rota.web.metrics import of_streams, registry
from rota.web.rights import Right
from rota.web.routes import Answer, Call, NoQuery, Route, get
from rota.web.streams import Streams


async def metrics(call: Call[NoQuery, None]) -> Answer:
    """As text 0.0.4, or as OpenMetrics 1.0 if the caller accepts that."""
    encode, media_type = choose_encoder(call.request.headers.get("accept", ""))
    streams: Streams = call.request.app.state.streams
    own = of_streams(len(streams), streams.resyncs)
    return Answer(encode(await registry(call.client, own)), headers={"Content-Type": media_type})


ROUTES: list[Route[Any, Any]] = [
    get("/metrics", "The metrics of the whole fleet, for Prometheus", Right.METRICS, metrics, str),
]
