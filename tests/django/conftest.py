"""The project of these tests is set up once in each process, over an SQLite file of its own."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.django.settings")
django.setup()
