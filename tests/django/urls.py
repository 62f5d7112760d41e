"""The URLs of the project that the tests of rota.django work on."""

from django.contrib import admin
from django.urls import path

urlpatterns = [path("admin/", admin.site.urls)]
