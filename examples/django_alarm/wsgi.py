"""The site for WSGI servers: gunicorn, waitress and the others."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "examples.django_alarm.settings")
application = get_wsgi_application()
