"""The settings of the served site: its files are in SERVED_DIR, its engine is as SERVED_ROTA says."""

import json
import os
from pathlib import Path
from typing import Any

BASE_DIR = Path(os.environ["SERVED_DIR"])
SECRET_KEY = "only for tests"
DEBUG = True
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "tests.django.served.urls"
WSGI_APPLICATION = "tests.django.served.wsgi.application"
ASGI_APPLICATION = "tests.django.served.asgi.application"
INSTALLED_APPS = [*os.environ.get("SERVED_APPS", "").split(), "rota.django", "tests.django.served"]
MIDDLEWARE: list[str] = []
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": BASE_DIR / "db.sqlite3"}}
USE_TZ = True
STATIC_URL = "static/"
ROTA: dict[str, Any] = json.loads(os.environ.get("SERVED_ROTA", "{}"))
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "loggers": {"rota": {"handlers": ["console"], "level": "INFO"}},
}
