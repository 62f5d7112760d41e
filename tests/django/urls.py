"""The URLs of the project that the tests of rota.django work on."""

from django.contrib import admin
from django.urls import include, path

from rota.django import views

urlpatterns = [
    path("admin/", admin.site.urls),
    path("rota/", include("rota.django.urls")),
    path("healthz", views.health),
    path("readyz", views.ready),
    path("metrics", views.metrics),
]
