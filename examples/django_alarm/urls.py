"""The pages of the site: its status, also at its root, and what a probe asks."""

from django.urls import path

from examples.django_alarm.alarm.views import status
from rota.django import views

urlpatterns = [
    path("", status),
    path("status", status),
    path("health", views.health),
    path("ready", views.ready),
    path("metrics", views.metrics),
]
