"""Changes through pages: submit, cancel, resume, extend and delete studies; sign in and out.

Forms can only GET and POST, so each change is a POST below the path of the page.
"""

from contextlib import suppress
from functools import partial
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Depends, Form, Request
from fastapi.responses import RedirectResponse, Response

from epsearch.failures.errors import NoStudy, Unavailable, UsageError
from epsearch.service.access.limits import ThreadedRouter, TooMany, in_thread
from epsearch.service.access.permissions import Forbidden, ReadOnly, check_change
from epsearch.service.access.tokens import COOKIE, SESSION_SECONDS
from epsearch.service.requests import parse_labels, parse_priority
from epsearch.service.routes import Name, Service, token_of
from epsearch.service.safety import check_role, writers_only
from epsearch.service.studies import Busy
from epsearch.service.web import forms
from epsearch.service.web.rendering import render
from epsearch.session.plan_text import in_words
from epsearch.study.description import Study
from epsearch.study.kinds import KINDS, Search
from epsearch.study.parsers import one_of
from results.ledger.writers.states import QUEUED, RUNNING

CANCELLABLE = (QUEUED, RUNNING)
"""States of a study that can be cancelled."""
OF_REQUESTS = ("do", "kind", "priority", "notify")
"""Fields of the form for a new study that are no options of it."""
READS = "Your token may only read."

Text = Annotated[str, Form()]
Values = Annotated[dict[str, str], Depends(forms.read)]


def routes(pages: ThreadedRouter, service: Service) -> None:
    """Adds the routes of all changes."""
    for add in (_new, _states, _extensions, _sessions):
        add(pages, service)


def new_page(request: Request, kind: str, values: dict[str, str], code: int = 200, **more: Any) -> Response:
    """Renders the form for a new study; more: `error`, a message; `plan`, subject -> text."""
    parts = {
        "error": "",
        "refused": "" if token_of(request).writes else READS,
        "plan": None,
        "kind": kind,
        "kinds": tuple(KINDS),
        "notifies": request.app.state.service.settings.notify_hosts,
        "values": values,
    } | more
    groups = forms.study_form(kind, values, request.app.state.service.settings, str(parts["error"]))
    wrong = next((field for fields in groups.values() for field in fields if field.wrong), None)
    return render(request, "new.html", code, groups=groups, unfolded=forms.is_unfolded, wrong_field=wrong, **parts)


def _status(error: Exception) -> int:
    """Returns the HTTP status of a form with an error."""
    statuses = {TooMany: 429, Unavailable: 503, Forbidden: 403, Busy: 409}
    return next((status for kind, status in statuses.items() if isinstance(error, kind)), 422)


def _new(pages: ThreadedRouter, service: Service) -> None:
    def build(values: Values) -> Study:
        options = {name: value for name, value in values.items() if name not in OF_REQUESTS}
        return service.studies.build({**options, "kind": values.get("kind", Search.kind)})

    def submit(request: Request, values: Values) -> Response:
        study, notify = build(values), service.studies.check_notify(values.get("notify"))
        priority = parse_priority(values.get("priority"))
        status = service.studies.submit(study, token_of(request), priority, notify=notify)
        return _back(status.name, already=bool(status.note))

    async def plan(request: Request, values: Values) -> Response:
        from epsearch.loop.estimates import Plan

        study, plan = await service.planner.plan(partial(build, values), token_of(request).name)
        text = in_words(Plan.from_json(study, plan))
        return await in_thread(new_page)(request, study.kind, values, plan=text, name=study.name)

    @pages.post("/new")
    async def new(request: Request, values: Values) -> Response:
        kind = one_of(values.get("kind", Search.kind), "kind", KINDS)
        try:
            check_role(request)
            return await (plan if values.get("do") == "plan" else in_thread(submit, pages.limiter))(request, values)
        except (UsageError, Unavailable) as error:
            return await in_thread(new_page)(request, kind, values, _status(error), error=str(error))


def _states(pages: ThreadedRouter, service: Service) -> None:
    studies = service.studies

    @pages.post("/studies/{name}/cancel", dependencies=[Depends(writers_only)])
    def cancel(request: Request, name: Name) -> Response:
        studies.cancel(name, token_of(request))
        return _back(name)

    @pages.post("/studies/{name}/resume", dependencies=[Depends(writers_only)])
    def resume(request: Request, name: Name) -> Response:
        studies.resume(name, token_of(request))
        return _back(name)

    @pages.get("/studies/{name}/cancel")
    def ask_before_cancelling(request: Request, name: Name) -> Response:
        status = studies.status(name)
        may = status.state in CANCELLABLE and not reason_of_refusal(service, name, request)
        return render(request, "cancel.html", name=name, status=status) if may else _back(name)

    @pages.get("/studies/{name}/resume")
    def redirect(name: Name) -> Response:
        return _back(name)

    @pages.post("/studies/{name}/delete", dependencies=[Depends(writers_only)])
    def delete(request: Request, name: Name, confirm: Annotated[str, Form()] = "") -> Response:
        try:
            studies.delete(name, confirm.strip(), token_of(request))
        except NoStudy:
            raise
        except UsageError as error:
            return change_page(request, service, name, {}, code=_status(error), delete_error=str(error))
        return RedirectResponse("/", status_code=303)


def reason_of_refusal(service: Service, name: str, request: Request) -> str:
    """Returns why the token of a request may not change a study; empty if it may."""
    try:
        check_change(name, service.studies.owner(name), token_of(request))
    except ReadOnly:
        return READS
    except Forbidden as refusal:
        return f"{str(refusal)[0].upper()}{str(refusal)[1:]}."
    return ""


def change_page(request: Request, service: Service, name: str, values: dict[str, str], **more: Any) -> Response:
    """Renders the forms that extend and delete a study. Raises NoStudy."""
    code = int(more.pop("code", 200))
    status, fields = service.studies.status(name), []
    parts: dict[str, Any] = {
        "error": "",
        "delete_error": "",
        "label_error": "",
        "refused": reason_of_refusal(service, name, request),
    }
    parts |= {"labels": (", ".join(status.tags), status.notes)} | more
    with suppress(UsageError):  # a study that cannot be read can be deleted
        study = service.studies.study(name)
        fields = forms.extension_form(study, values, service.settings, str(parts["error"]))
    wrong = next((field for field in fields if field.wrong), None)
    parts |= {"wrong_field": wrong, "status": status, "fields": fields}
    return render(request, "change.html", code, name=name, **parts)


def _extensions(pages: ThreadedRouter, service: Service) -> None:
    @pages.get("/studies/{name}/change")
    def change(request: Request, name: Name) -> Response:
        return change_page(request, service, name, dict(request.query_params))

    @pages.post("/studies/{name}/extend")
    def extend(request: Request, name: Name, values: Values) -> Response:
        try:
            check_role(request)
            changes = forms.changes(service.studies.study(name), values)
            if not changes:
                raise UsageError("no field differs from the study; change one")
            service.studies.extend(name, changes, token_of(request))
        except NoStudy:
            raise
        except UsageError as error:
            return change_page(request, service, name, values, code=_status(error), error=str(error))
        return _back(name)

    @pages.post("/studies/{name}/labels")
    def label(request: Request, name: Name, tags: Text = "", notes: Text = "") -> Response:
        try:
            check_role(request)
            service.studies.label(name, parse_labels(tags, notes), token_of(request))
        except NoStudy:
            raise
        except UsageError as error:
            return change_page(
                request, service, name, {}, code=_status(error), label_error=str(error), labels=(tags, notes)
            )
        return _back(name)

    @pages.get("/studies/{name}/labels")
    @pages.get("/studies/{name}/extend")
    @pages.get("/studies/{name}/delete")
    def redirect(name: Name) -> Response:
        return RedirectResponse(f"/studies/{quote(name)}/change", status_code=303)


def _sessions(pages: ThreadedRouter, service: Service) -> None:
    @pages.get("/sign-in")
    def sign_in(request: Request, next: str = "/") -> Response:
        return render(request, "sign-in.html", next=_local_path(next), wrong=False)

    @pages.post("/sign-in")
    def open_session(
        request: Request, token: Annotated[str, Form()] = "", next: Annotated[str, Form()] = "/"
    ) -> Response:
        valid = service.settings.tokens.of_secret(token)
        if valid is None:
            return render(request, "sign-in.html", 401, next=_local_path(next), wrong=True)
        answer = RedirectResponse(_local_path(next), status_code=303)
        answer.set_cookie(
            COOKIE,
            service.settings.tokens.session(valid),
            max_age=int(SESSION_SECONDS),
            httponly=True,
            samesite="strict",
            path=service.settings.root or "/",
            secure=service.settings.secure,
        )
        return answer

    @pages.post("/sign-out")
    def sign_out(request: Request) -> Response:
        service.settings.tokens.end_session(request.cookies.get(COOKIE, ""))
        answer = RedirectResponse("/sign-in", status_code=303)
        answer.delete_cookie(
            COOKIE, path=service.settings.root or "/", secure=service.settings.secure, httponly=True, samesite="strict"
        )
        return answer


def _back(name: str, already: bool = False) -> Response:
    """Redirects to the page of a study; already: True if nothing was changed, which the page notes."""
    return RedirectResponse(f"/studies/{quote(name)}{'?already=1' * already}", status_code=303)


def _local_path(path: str) -> str:
    """Returns the path of a link if it is of this service, else the path of the first page."""
    local = path.startswith("/") and not path.startswith("//") and "\\" not in path and path.isprintable()
    return path if local else "/"
