"""What pages ask for: studies submitted, cancelled, resumed, extended, deleted; signing in and out.

Forms can only GET and POST, so each is a POST below the page's own path.
"""

from contextlib import suppress
from functools import partial
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Depends, Form, Request
from fastapi.responses import RedirectResponse, Response

from epsearch.failures.errors import NoStudy, Unavailable, UsageError
from epsearch.service.access.shares import Threads, TooMany, in_thread
from epsearch.service.access.tokens import COOKIE, SESSION_SECONDS
from epsearch.service.requests import priority
from epsearch.service.routes import Name, Service, who
from epsearch.service.safety import Forbidden, writers_only, writing
from epsearch.service.studies import Busy
from epsearch.service.web import forms
from epsearch.service.web.rendering import rendered
from epsearch.session.plan_text import in_words
from epsearch.study.description import Study
from epsearch.study.kinds import KINDS, Search
from epsearch.study.parsers import one_of

Typed = Annotated[dict[str, str], Depends(forms.typed)]


def routes(pages: Threads, service: Service) -> None:
    """Adds all of them."""
    for add in (_new, _states, _growth, _sessions):
        add(pages, service)


def new_page(request: Request, kind: str, values: dict[str, str], code: int = 200, **more: Any) -> Response:
    """The form for a new study; more: `error`, the line about it; `plan`, subject -> text."""
    own = {"error": "", "plan": None, "kind": kind, "kinds": tuple(KINDS), "values": values} | more
    groups = forms.of_new(kind, values, str(own["error"]))
    wrong = next((one for fields in groups.values() for one in fields if one.wrong), None)
    return rendered(request, "new.html", code, groups=groups, unfolded=forms.unfolded, wrong_field=wrong, **own)


def _status(error: Exception) -> int:
    """Of a form that comes back with a line about it."""
    statuses = {TooMany: 429, Unavailable: 503, Forbidden: 403, Busy: 409}
    return next((status for kind, status in statuses.items() if isinstance(error, kind)), 422)


def _new(pages: Threads, service: Service) -> None:
    def built(typed: Typed) -> Study:
        values = {name: value for name, value in typed.items() if name not in ("do", "kind", "priority")}
        return service.studies.build({**values, "kind": typed.get("kind", Search.kind)})

    def submitted(request: Request, typed: Typed) -> Response:
        done = service.studies.submit(built(typed), who(request).name, priority(typed.get("priority")))
        return _back(done.name, already=bool(done.note))

    async def planned(request: Request, typed: Typed) -> Response:
        from epsearch.loop.ahead import Plan

        study, plan = await service.planner.plan(partial(built, typed), who(request).name)
        words = in_words(Plan.from_json(study, plan))
        return await in_thread(new_page)(request, study.kind, typed, plan=words, planned=study.name)

    @pages.post("/new")
    async def new(request: Request, typed: Typed) -> Response:
        kind = one_of(typed.get("kind", Search.kind), "kind", KINDS)
        try:
            writing(request)
            return await (planned if typed.get("do") == "plan" else in_thread(submitted, pages.limiter))(request, typed)
        except (UsageError, Unavailable) as error:
            return await in_thread(new_page)(request, kind, typed, _status(error), error=str(error))


def _states(pages: Threads, service: Service) -> None:
    studies = service.studies

    @pages.post("/studies/{name}/cancel", dependencies=[Depends(writers_only)])
    def cancel(request: Request, name: Name) -> Response:
        studies.cancel(name, who(request).name)
        return _back(name)

    @pages.post("/studies/{name}/resume", dependencies=[Depends(writers_only)])
    def resume(request: Request, name: Name) -> Response:
        studies.resume(name, who(request).name)
        return _back(name)

    @pages.get("/studies/{name}/cancel")
    @pages.get("/studies/{name}/resume")
    def asked_for(name: Name) -> Response:
        return _back(name)

    @pages.post("/studies/{name}/delete", dependencies=[Depends(writers_only)])
    def delete(request: Request, name: Name, confirm: Annotated[str, Form()] = "") -> Response:
        try:
            studies.delete(name, confirm.strip(), who(request).name)
        except NoStudy:
            raise
        except UsageError as error:
            return change_page(request, service, name, {}, code=422, not_deleted=str(error))
        return RedirectResponse("/", status_code=303)


def change_page(request: Request, service: Service, name: str, typed: dict[str, str], **more: Any) -> Response:
    """The forms that extend and delete a study. Raises NoStudy."""
    code = int(more.pop("code", 200))
    own = {"error": "", "not_deleted": "", "may": who(request).writes} | more
    status, fields = service.studies.status(name), []
    with suppress(UsageError):  # what cannot be read can be deleted
        study = service.studies.study(name)
        fields = forms.of_growth(study, typed, str(own["error"])) if study.grows else []
    wrong = next((one for one in fields if one.wrong), None)
    own |= {"wrong_field": wrong, "status": status, "fields": fields}
    return rendered(request, "change.html", code, name=name, **own)


def _growth(pages: Threads, service: Service) -> None:
    @pages.get("/studies/{name}/change")
    def change(request: Request, name: Name) -> Response:
        return change_page(request, service, name, {})

    @pages.post("/studies/{name}/extend")
    def extend(request: Request, name: Name, typed: Typed) -> Response:
        try:
            writing(request)
            asked = forms.changed(service.studies.study(name), typed)
            if not asked:
                raise UsageError("nothing differs from what the study has; change a field")
            service.studies.extend(name, asked, who(request).name)
        except NoStudy:
            raise
        except UsageError as error:
            return change_page(request, service, name, typed, code=_status(error), error=str(error))
        return _back(name)

    @pages.get("/studies/{name}/extend")
    @pages.get("/studies/{name}/delete")
    def asked_for(name: Name) -> Response:
        return RedirectResponse(f"/studies/{quote(name)}/change", status_code=303)


def _sessions(pages: Threads, service: Service) -> None:
    @pages.get("/sign-in")
    def sign_in(request: Request, next: str = "/") -> Response:
        return rendered(request, "sign-in.html", next=_own(next), wrong=False)

    @pages.post("/sign-in")
    def signed_in(request: Request, token: Annotated[str, Form()] = "", next: Annotated[str, Form()] = "/") -> Response:
        known = service.settings.tokens.of_secret(token)
        if known is None:
            return rendered(request, "sign-in.html", 401, next=_own(next), wrong=True)
        answer = RedirectResponse(_own(next), status_code=303)
        answer.set_cookie(
            COOKIE,
            service.settings.tokens.session(known),
            max_age=int(SESSION_SECONDS),
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return answer

    @pages.post("/sign-out")
    def sign_out(request: Request) -> Response:
        service.settings.tokens.end_session(request.cookies.get(COOKIE, ""))
        answer = RedirectResponse("/sign-in", status_code=303)
        answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return answer


def _back(name: str, already: bool = False) -> Response:
    """To the page of a study; already: nothing had to be done, which the page says."""
    return RedirectResponse(f"/studies/{quote(name)}{'?already=1' * already}", status_code=303)


def _own(path: str) -> str:
    """A path of this service, whatever somebody has written into a link."""
    inside = path.startswith("/") and not path.startswith("//") and "\\" not in path and path.isprintable()
    return path if inside else "/"
