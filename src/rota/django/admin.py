"""The section "Rota" of Django's admin: lists, one row, why it does not run, and what may be done with it.

The pages are clients of the HTTP service, which has the cursors, the masks, the audit and the words. No page counts all
rows of a store.
"""

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.admin.utils import quote, unquote
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views.decorators.csrf import csrf_protect

from rota.django.admin_models import Flow, Run, Schedule, Task, Worker
from rota.django.bridge import API, Answer, call_service, part

PAGE = 50
LONGEST = 500
"""Characters of a filter or a note that are read at most."""
MOST = 200
"""Rows on which one action works at most."""
VIEW, RUNS, SCHEDULES = "rota.view_run", "rota.change_run", "rota.change_schedule"


if TYPE_CHECKING:
    _Base = admin.ModelAdmin[Any]
else:
    _Base = admin.ModelAdmin  # Django's own class takes no parameters


class Act(NamedTuple):
    """What a person may do with a row: the last part of its path in the service, and the permission that it needs."""

    name: str
    label: str
    permission: str = RUNS


class Section(_Base):
    """One list of the store, its rows by the fields of the service."""

    path: ClassVar[str]
    key: ClassVar[str]
    columns: ClassVar[tuple[str, ...]]
    filters: ClassVar[tuple[str, ...]] = ()
    acts: ClassVar[tuple[Act, ...]] = ()

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return _may(request, VIEW)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(self._allowed(request))

    def has_module_permission(self, request: HttpRequest) -> bool:
        return _may(request, VIEW)

    @method_decorator(csrf_protect)
    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        self._check(request)
        if request.method == "POST":
            return self._act(request, request.POST.getlist("_selected_action")[:MOST])
        given = {name: value[:LONGEST] for name in self.filters if (value := request.GET.get(name, "").strip())}
        query = {**given, "limit": str(PAGE)} if self.filters else {}
        if cursor := request.GET.get("cursor", "")[:100]:
            query["cursor"] = cursor
        answer = self._service(request, "GET", f"{API}/{self.path}", query)
        found: list[dict[str, Any]] = answer.json.get("items", []) if answer.ok else []
        more = {**given, "cursor": answer.json["next"]} if answer.ok and answer.json.get("next") else None
        context = {
            "rows": [self._row(row) for row in found],
            "columns": [column.replace("_", " ") for column in self.columns],
            "filters": [(name, given.get(name, "")) for name in self.filters],
            "acts": self._allowed(request),
            "problem": "" if answer.ok else answer.detail,
            "next": more,
        }
        return self._page(request, "admin/rota/list.html", self.opts.verbose_name_plural, context)

    @method_decorator(csrf_protect)
    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        self._check(request)
        id = unquote(object_id)
        if request.method == "POST":
            return self._act(request, [id])
        answer = self._service(request, "GET", f"{API}/{self.path}/{part(id)}")
        if answer.status == 404:
            raise Http404(answer.detail)
        why = self._service(request, "GET", f"{API}/why", {"subject": id})
        context = {
            "fields": [(name.replace("_", " "), _shown(name, value)) for name, value in answer.json.items()]
            if answer.ok
            else [],
            "acts": self._allowed(request),
            "problem": "" if answer.ok else answer.detail,
            "why": why.json if why.ok else None,
            "id": id,
        }
        return self._page(request, "admin/rota/row.html", id, context)

    def _act(self, request: HttpRequest, ids: list[str]) -> HttpResponse:
        """Do one action on each of the rows, note it in the log of the admin, and go back to the page."""
        name = request.POST.get("action", "")
        act = next((each for each in self._allowed(request) if each.name == name), None)
        if act is None:
            raise PermissionDenied(f"this needs the permission for {name or 'an action'}")
        note = request.POST.get("note", "").strip()[:LONGEST]
        done = 0
        for id in ids:
            body = {"note": note} if note else {}
            answer = self._service(request, "POST", f"{API}/{self.path}/{part(id)}/{act.name}", body=body)
            if answer.ok:
                done += 1
                self._log(request, id, act, note)
            else:
                messages.error(request, f"{id}: {answer.detail}")
        if done:
            messages.success(request, f"{act.label}: {done} of {len(ids)}.")
        return HttpResponseRedirect(request.get_full_path())

    def _log(self, request: HttpRequest, id: str, act: Act, note: str) -> None:
        LogEntry.objects.create(
            user_id=request.user.pk,
            content_type=ContentType.objects.get_for_model(self.model, for_concrete_model=False),
            object_id=id,
            object_repr=id[:200],
            action_flag=CHANGE,
            change_message=f"{act.label}{': ' if note else ''}{note}",
        )

    def _allowed(self, request: HttpRequest) -> list[Act]:
        return [act for act in self.acts if _may(request, act.permission)]

    def _check(self, request: HttpRequest) -> None:
        if not self.has_view_permission(request):
            raise PermissionDenied

    def _service(self, request: HttpRequest, method: str, path: str, query: Any = None, body: Any = None) -> Answer:
        """Call the service as this user, whose permissions were checked here."""
        from rota.web.rights import Principal, Right

        rights = frozenset({Right.READ, Right.PAYLOAD, Right.OPERATE, Right.SCHEDULE})
        return call_service(Principal(request.user.get_username(), rights), method, path, query, body)

    def _row(self, row: dict[str, Any]) -> dict[str, Any]:
        id = str(row[self.key])
        place = reverse(f"{self.admin_site.name}:rota_{self.opts.model_name}_change", args=[quote(id)])
        return {"id": id, "url": place, "cells": [_shown(name, row.get(name)) for name in self.columns]}

    def _page(self, request: HttpRequest, template: str, title: Any, context: dict[str, Any]) -> HttpResponse:
        request.current_app = self.admin_site.name
        shared = {**self.admin_site.each_context(request), "opts": self.opts, "title": title, "media": self.media}
        return TemplateResponse(request, template, {**shared, **context})


@admin.register(Run)
class RunSection(Section):
    path, key = "runs", "id"
    columns = ("id", "task", "key", "state", "reason", "created_at", "due_at", "finished_at")
    filters = ("state", "task", "key", "q")
    acts = (Act("cancel", "Cancel"), Act("retry", "Retry"), Act("pause", "Pause"), Act("resume", "Resume"))


@admin.register(Schedule)
class ScheduleSection(Section):
    path, key = "schedules", "id"
    columns = ("id", "task", "state", "words", "zone", "next_at", "last_at", "last")
    acts = (
        Act("pause", "Pause", SCHEDULES),
        Act("resume", "Resume", SCHEDULES),
        Act("run-now", "Run now", SCHEDULES),
    )


@admin.register(Task)
class TaskSection(Section):
    path, key = "tasks", "task"
    columns = ("task", "parameters", "queued", "running", "paused", "enabled", "description")
    acts = (Act("pause", "Pause"), Act("resume", "Resume"))


@admin.register(Flow)
class FlowSection(Section):
    path, key = "flows", "flow"
    columns = ("flow", "period", "steps", "done", "running", "waiting", "failed", "next_recheck")


@admin.register(Worker)
class WorkerSection(Section):
    path, key = "workers", "name"
    columns = ("name", "standing", "host", "pid", "seats", "held", "seen_at")
    acts = (Act("quiet", "Start no more runs"), Act("resume", "Start runs again"), Act("stop", "Stop"))


def _may(request: HttpRequest, permission: str) -> bool:
    user: Any = request.user  # of the project's own model
    return bool(user.is_active and user.is_staff and user.has_perm(permission))


def _shown(name: str, value: Any) -> Any:
    """Return a value for a template: instants as datetimes, which Django shows in the time zone of the project."""
    if isinstance(value, str) and name.endswith("_at"):
        try:
            return datetime.fromisoformat(value)
        except ValueError:
            return value
    if isinstance(value, dict | list):
        return json.dumps(value, indent=1, ensure_ascii=False) if value else ""
    return "" if value is None else value
