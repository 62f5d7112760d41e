"""The status of the engine in this process."""

import msgspec
from django.http import HttpRequest, HttpResponse

from rota.django import app


def status(request: HttpRequest) -> HttpResponse:
    """Say of each task whether it runs and when it comes next, and of each loop whether it lives."""
    return HttpResponse(msgspec.json.encode(app.status()), content_type="application/json")
