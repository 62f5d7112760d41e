"""A page that names the process that answers, and one that never answers."""

import os
import threading

from django.http import HttpRequest, HttpResponse
from django.urls import path


def page(request: HttpRequest) -> HttpResponse:
    return HttpResponse(str(os.getpid()))


def hang(request: HttpRequest) -> HttpResponse:
    print("a request hangs", flush=True)
    threading.Event().wait(300)
    return HttpResponse()


urlpatterns = [path("", page), path("hang", hang)]
