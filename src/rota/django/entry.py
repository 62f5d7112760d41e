"""The app of a Django project where manage.py has not set Django up: `rota worker -A rota.django.entry:app`.

The processes of `rota_worker --processes` import this module too.
"""

import django
from django.apps import apps

from rota.django import project

if not apps.ready:
    django.setup()

app = project.app()
