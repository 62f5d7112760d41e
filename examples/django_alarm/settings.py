"""The settings of the site. ALARM_DIR is the folder of its two SQLite files."""

import os
from pathlib import Path
from typing import Any

BASE_DIR = Path(os.environ.get("ALARM_DIR") or Path.cwd())
SECRET_KEY = "an example keeps no secrets"
DEBUG = True
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "testserver"]
ROOT_URLCONF = "examples.django_alarm.urls"
WSGI_APPLICATION = "examples.django_alarm.wsgi.application"
INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "rota.django",  # the engine in the web process
    "examples.django_alarm.alarm",
]
MIDDLEWARE: list[str] = []
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": BASE_DIR / "alarm.sqlite3"}}
TIME_ZONE = "Europe/Paris"  # DailyAt(3) is three o'clock there
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
ROTA: dict[str, Any] = {"EMBEDDED": "auto"}  # False: only `manage.py rota_worker` works
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "loggers": {"rota": {"handlers": ["console"], "level": os.environ.get("ALARM_LOG", "INFO")}},
}
