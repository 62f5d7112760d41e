"""The settings of the project that the tests of rota.django work on. Variables of the environment change them, for the
processes that a test starts."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

BASE_DIR = Path(os.environ.get("SHOP_DIR") or tempfile.mkdtemp(prefix="rota-shop-"))
SECRET_KEY = "only for tests"
DEBUG = bool(os.environ.get("SHOP_DEBUG"))
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "tests.django.urls"
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.admin",
    "rota.django",
    "tests.django.shop",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
DATABASES: dict[str, Any] = json.loads(os.environ.get("SHOP_DATABASES", "null")) or {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": BASE_DIR / "db.sqlite3",
        "OPTIONS": {"transaction_mode": "IMMEDIATE"},
    }
}
TIME_ZONE = os.environ.get("SHOP_TIME_ZONE", "UTC")
USE_TZ = True
STATIC_URL = "static/"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
ROTA: dict[str, Any] = json.loads(os.environ.get("SHOP_ROTA", "{}"))
TASKS = {"default": {"BACKEND": os.environ.get("SHOP_TASKS", "rota.django.tasks.RotaBackend"), "QUEUES": []}}
