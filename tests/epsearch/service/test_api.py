"""The API as programs see it: typed refusals, a description with options and security, ETags, pages."""

import jsonschema
import pytest

from epsearch.service.problems import MEDIA_TYPE, PROBLEMS, TYPE
from epsearch.service.requests import SERVER_SET
from epsearch.service.schema import NAMES, TAGS, options_of
from epsearch.service_url import parse
from epsearch.study.kinds import KINDS
from tests.support import ledgers
from tests.support.service import SECRETS, STUDY, TOKENS, client_of, settings, with_a_finished_study

API = "/api/v1"


def bearer(role):
    return {"Authorization": f"Bearer {SECRETS[role]}"}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A client of a service with tokens, which trains nothing, with a finished study and the writer's study `mine`."""
    with client_of(
        with_a_finished_study(tmp_path_factory.mktemp("api") / "runs", tokens=TOKENS), raises=False
    ) as client:
        assert client.post(f"{API}/studies", json=STUDY | {"name": "mine"}, headers=bearer("write")).status_code == 201
        yield client


@pytest.fixture(scope="module")
def schema(guarded):
    return guarded.get(f"{API}/openapi.json", headers=bearer("read")).json()


REFUSALS = {
    "no-token": ("GET", "/studies", None, None, {}),
    "read-only": ("POST", "/studies", STUDY, "read", {}),
    "not-owner": ("POST", f"/studies/{ledgers.NAME}/cancel", None, "write", {}),
    "forbidden": ("POST", "/studies?priority=5", STUDY | {"name": "first-of-all"}, "write", {}),
    "foreign-page": ("POST", "/studies", STUDY, "write", {"Origin": "https://evil.example"}),
    "no-study": ("GET", "/studies/nobody", None, "read", {}),
    "not-found": ("GET", "/nothing", None, "read", {}),
    "wrong-method": ("PUT", "/studies", None, "write", {}),
    "busy": ("POST", f"/studies/{ledgers.NAME}/cancel", None, "admin", {}),
    "too-large": ("POST", "/studies", None, "write", {"Content-Length": "99999999"}),
    "unknown-host": ("GET", "/studies", None, None, {"Host": "evil.example"}),
    "bad-input": ("POST", "/studies", STUDY | {"points": 1}, "write", {}),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_has_a_type_that_a_program_tests(guarded, name):
    method, path, body, role, headers = REFUSALS[name]
    own = headers | (bearer(role) if role else {})
    answer = guarded.request(method, f"{API}{path}", json=body, headers=own)
    problem, (status, title) = answer.json(), PROBLEMS[name]
    assert answer.headers["content-type"] == MEDIA_TYPE
    assert (problem["type"], problem["title"], problem["status"]) == (TYPE + name, title, status)
    assert answer.status_code == status and problem["detail"] and "\n" not in problem["detail"]


@pytest.mark.parametrize("body", [[], "text", {"points": "many"}, {"no": 1}, {"kind": "other"}])
def test_every_bad_body_is_bad_input(guarded, body):
    answer = guarded.post(f"{API}/studies", json=body, headers=bearer("write"))
    assert (answer.status_code, answer.json()["type"]) == (422, f"{TYPE}bad-input")


def test_the_description_names_every_operation_and_what_it_needs(schema):
    operations = [one for methods in schema["paths"].values() for one in methods.values()]
    assert len({one["operationId"] for one in operations}) == len(operations) > 20
    assert {tag for one in operations for tag in one["tags"]} == {one["name"] for one in schema["tags"]} == {*TAGS}
    assert {name for one in schema["security"] for name in one} == {*schema["components"]["securitySchemes"]}
    assert schema["paths"]["/health"]["get"]["security"] == []


@pytest.mark.slow
def test_a_service_without_tokens_describes_none(tmp_path):
    with client_of(settings(tmp_path / "runs")) as client:
        assert "security" not in client.get(f"{API}/openapi.json").json()


@pytest.mark.parametrize("kind", KINDS)
def test_the_options_of_a_study_are_those_of_its_command(schema, kind):
    described = schema["components"]["schemas"][NAMES[kind]]
    assert described == options_of(kind)
    options = {name: one for name, one in KINDS[kind].options().items() if name not in SERVER_SET}
    assert {*described["properties"]} == {*options, "kind"}
    jsonschema.Draft202012Validator.check_schema(described)
    values = {name: value for name, one in options.items() if (value := one.show(one.default)) not in (None, [])}
    jsonschema.validate(values | {"kind": kind}, described, jsonschema.Draft202012Validator)
    for wrong in ({"tasks": "many"}, {"unknown": 1}, {"device": "tpu"}, {"kind": "other"}):
        assert not jsonschema.Draft202012Validator(described).is_valid({"kind": kind} | wrong), wrong


def test_what_the_schema_describes_is_accepted(guarded):
    """A value of each type, as a generated client sends it."""
    body = {
        **{"kind": "run", "dataset": "permuted_digits", "seeds": [3, 5], "interval": [0, 0.5], "race": True},
        **{"examples_per_task": 60, "memory_batch": "all", "time_budget": "90s", "choose": "tried", "points": 3},
        **{"repeats": 1, "tasks": 4, "cv_tasks": 2, "memory": 3, "name": "typed", "most_seeds": 3},
    }
    jsonschema.validate(body, options_of("run"), jsonschema.Draft202012Validator)
    answer = guarded.post(f"{API}/studies", json=body, headers=bearer("write"))
    assert answer.status_code == 201, answer.text
    assert answer.headers["location"] == f"{API}/studies/typed"
    assert guarded.get(answer.headers["location"], headers=bearer("read")).json()["config"]["seeds"] == [3, 5]


@pytest.mark.slow
def test_the_place_of_a_new_study_is_below_the_path_of_a_proxy(tmp_path):
    with client_of(settings(tmp_path / "runs", url=parse("https://lab.example/epsearch"))) as client:
        answer = client.post(f"{API}/studies", json=STUDY | {"name": "first"})
        assert answer.status_code == 201 and answer.headers["location"] == "/epsearch/api/v1/studies/first"


@pytest.mark.slow
def test_an_answer_that_has_not_changed_is_not_sent_again(guarded):
    own = bearer("write")
    for path in (f"/studies/{ledgers.NAME}", f"/studies/{ledgers.NAME}/runs?format=csv", "/studies", "/openapi.json"):
        first = guarded.get(f"{API}{path}", headers=own)
        tag = first.headers["etag"]
        again = guarded.get(f"{API}{path}", headers=own | {"If-None-Match": f'"other", W/{tag}'})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag), path
        assert guarded.head(f"{API}{path}", headers=own).headers["etag"] == tag
        assert guarded.get(f"{API}{path}", headers=own | {"If-None-Match": '"other"'}).content == first.content
    tag = guarded.get(f"{API}/studies/mine/standing", headers=own).headers["etag"]
    assert guarded.post(f"{API}/studies/mine/cancel", headers=own).status_code == 200
    changed = guarded.get(f"{API}/studies/mine/standing", headers=own | {"If-None-Match": tag})
    assert changed.status_code == 200 and changed.headers["etag"] != tag
    assert "etag" not in guarded.get("/", headers=own | {"Accept": "text/html"}).headers, "pages stay with nobody"
    assert "etag" not in guarded.get(f"{API}/studies/nobody", headers=own).headers


@pytest.mark.slow
def test_pages_go_on_where_the_last_one_ended(tmp_path):
    with client_of(settings(tmp_path / "runs")) as client:
        for number in range(7):
            client.post(f"{API}/studies", json=STUDY | {"name": f"s{number}"})
        first = client.get(f"{API}/studies", params={"per_page": 3}).json()
        client.post(f"{API}/studies", json=STUDY | {"name": "late"})
        second = client.get(f"{API}/studies", params={"per_page": 3, "after": first["next"]}).json()
        last = client.get(f"{API}/studies", params={"per_page": 3, "after": second["next"]}).json()
        names = [one["name"] for page in (first, second, last) for one in page["studies"]]
        assert names == [f"s{number}" for number in reversed(range(7))] and last["next"] is None
        by_name = client.get(f"{API}/studies", params={"sort": "name"}).json()["studies"]
        assert [one["name"] for one in by_name] == ["late", *(f"s{number}" for number in range(7))]
        assert client.get(f"{API}/studies", params={"sort": "size"}).status_code == 422
        assert client.get(f"{API}/studies", params={"after": "AAAA"}).status_code == 422
