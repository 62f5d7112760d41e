"""The site for ASGI servers: gunicorn, uvicorn and the others."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "examples.django_alarm.settings")
application = get_asgi_application()
