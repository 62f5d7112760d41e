"""The control room: `path("rota/", include("rota.django.urls"))`."""

from django.urls import path

from rota.django import views

app_name = "rota"
urlpatterns = [path("", views.control_room, name="control_room"), path("<path:path>", views.control_room)]
