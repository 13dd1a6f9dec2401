"""A study's life over HTTP: submitted, trained, read in every form, cancelled, resumed, extended, compared, deleted."""

import base64
import hashlib
import io
import json
import re

import pandas as pd
import pytest

from epsearch.service.reporting import policy
from epsearch.service.requests import SERVER_SET
from epsearch.service.work.job import main as job
from epsearch.study.kinds import KINDS
from tests.support import ledgers
from tests.support.service import STUDY, client_of, settings, with_a_finished_study

API = "/api/v1"
NAME = ledgers.NAME


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """Of a service that has a finished study, a queued one, a cancelled one, and one that cannot be read."""
    own = with_a_finished_study(tmp_path_factory.mktemp("service") / "runs")
    with client_of(own) as made:
        for name in ("waiting", "cancelled"):
            assert made.post(f"{API}/studies", json=STUDY | {"name": name}).status_code == 201
        assert made.post(f"{API}/studies/cancelled/cancel").status_code == 200
        yield made


def get(client, path, /, **query):
    answer = client.get(f"{API}/{path}", params=query)
    assert answer.status_code == 200, answer.text
    return answer


@pytest.mark.slow
def test_lists_are_filtered_and_paged(client):
    every = get(client, "studies").json()
    assert every["total"] == 3 and [one["name"] for one in every["studies"]] == ["cancelled", "waiting", NAME]
    assert [one["state"] for one in every["studies"]] == ["cancelled", "queued", "finished"]

    def names(**query):
        return [one["name"] for one in get(client, "studies", **query).json()["studies"]]

    assert names(state="queued") == ["waiting"] and names(state="failed") == names(kind="compare") == []
    assert names(dataset="permuted_digits", search="AIT") == ["waiting"] and names(search="") == names()
    assert names(per_page=2) + names(per_page=2, page=2) == names() and names(page=9) == []
    assert names(kind="run") == names()


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("studies?state=runing", "no state 'runing'; known: queued, running, "),
        ("studies?kind=search", "no kind 'search'; known: run, compare, memory, protocols"),
        (
            "studies?stat=running",
            "no query parameter 'stat'; known: sort, page, after, per_page, state, dataset, kind, search, submitter, ",
        ),
        ("studies?page=x", "page must be a whole number, got 'x'"),
        (f"studies/{NAME}?page=1", "no query parameter 'page'; there is none"),
        ("compare?study=a", "study must be given 2 times or more, got ['a']"),
    ],
)
def test_a_question_that_no_route_understands_is_told_what_is(client, path, line):
    answer = client.get(f"{API}/{path}")
    assert answer.status_code == 422 and answer.json()["detail"].startswith(line), answer.text


@pytest.mark.parametrize(
    ("body", "headers", "line"),
    [
        (b'{"kind": "run"}', {}, 'the body must be a JSON object like {"kind": "run"}, sent with Content-Type: '),
        (b"[1]", {"content-type": "application/json"}, "the body must be a JSON object"),
        (b"", {"content-type": "application/json"}, "the body must be a JSON object"),
        (b'{"kind" "run"}', {"content-type": "application/json"}, "the body must be JSON; it is not at character 8"),
        (
            b'{"kind": "search"}',
            {"content-type": "application/json"},
            "no kind 'search'; known: run, compare, memory, protocols; ",
        ),
    ],
)
def test_a_body_that_cannot_be_read_is_refused_in_words(client, body, headers, line):
    answer = client.post(f"{API}/studies", content=body, headers=headers)
    assert answer.status_code == 422 and answer.json()["detail"].startswith(line), answer.text


@pytest.mark.slow
def test_state_and_detail_never_contradict_each_other(tmp_path):
    """Of a study that was finished, and is in the queue again."""
    with client_of(with_a_finished_study(tmp_path / "runs")) as client:

        def said():
            one = get(client, "studies").json()["studies"][0]
            assert get(client, f"studies/{NAME}").json()["state"] == one["state"]
            return one["state"], one["detail"], one["status"]

        assert said() == ("finished", "", "finished")
        created = get(client, f"studies/{NAME}").json()["created"]
        assert client.post(f"{API}/studies/{NAME}/extend", json={"seeds": 3}).status_code == 200
        assert said() == ("queued", "it was finished before", "queued: it was finished before")
        assert get(client, f"studies/{NAME}").json()["created"] == created


@pytest.mark.slow
def test_a_study_of_the_queue_says_its_place_and_keeps_the_time_of_its_first_submission(tmp_path):
    with client_of(settings(tmp_path / "runs")) as client:
        for name in ("one", "two", "three"):
            client.post(f"{API}/studies", json=STUDY | {"name": name})

        def shown(name):
            return get(client, f"studies/{name}").json()

        assert [(shown(name)["place"], shown(name)["ahead"]) for name in ("one", "three")] == [
            (1, []),
            (3, ["one", "two"]),
        ]
        created = shown("one")["created"]
        client.post(f"{API}/studies/one/cancel")
        assert shown("one")["place"] is None
        client.post(f"{API}/studies/one/resume")
        assert shown("one")["created"] == created and shown("one")["place"] == 3
        client.delete(f"{API}/studies/one", params={"confirm": "one"})
        client.post(f"{API}/studies", json=STUDY | {"name": "one"})
        assert shown("one")["created"] > created, "another study of that name"


@pytest.mark.slow
def test_a_name_that_was_given_before_it_was_too_long_can_be_cancelled_and_deleted(tmp_path):
    long = "n" * 300
    with client_of(settings(tmp_path / "runs")) as client:
        refused = client.post(f"{API}/studies", json=STUDY | {"name": long})
        assert refused.status_code == 422 and "name must have at most 100 characters, got 300" in refused.text
        store = client.app.state.service.studies.store
        store.queue.submit(long, {"kind": "run", "options": STUDY | {"name": long}})
        assert client.post(f"{API}/studies/{long}/cancel").json()["state"] == "cancelled"
        page = client.get(f"/studies/{long}/change", headers={"accept": "text/html"})
        assert page.status_code == 200 and f"Delete {long}" in page.text
        assert client.delete(f"{API}/studies/{long}", params={"confirm": long}).status_code == 200
        assert get(client, "studies").json()["total"] == 0


def test_a_folder_cannot_be_named_where_none_was_given(client):
    answer = client.post(f"{API}/studies", json={"dataset": "folder:birds"})
    assert answer.status_code == 422 and answer.json()["detail"].endswith("this service was started without --images")


def test_one_study_is_shown_with_what_it_found(client, epsearch):
    shown = get(client, f"studies/{NAME}").json()
    assert shown["state"] == "finished" and shown["members"] == get(client, "ledger").json()["runs"] > 0
    assert shown["chosen"]["epsilon"] >= 0 and 0 < shown["score"] < 1 and shown["answer"] and shown["verdict"]["text"]
    assert shown["priority"] is shown["submitter"] is shown["progress"] is None
    assert not {*SERVER_SET} & {*shown["config"]} and shown["config"]["points"] == 3
    waiting = get(client, "studies/waiting").json()
    assert (waiting["state"], waiting["members"], waiting["found"], waiting["priority"]) == ("queued", 0, "–", 0)
    assert waiting["submitter"] == "" and waiting["config"]["points"] == 3


@pytest.mark.parametrize("width", [60, pytest.param(120, marks=pytest.mark.slow)])
def test_the_outcome_is_what_the_command_line_prints(client, epsearch, width, monkeypatch):
    from epsearch import cli
    from epsearch.commands import printing
    from epsearch.terminal.consoles import PlainConsole

    out = client.app.state.service.settings.out
    for module in (cli, printing):
        monkeypatch.setattr(module, "out", PlainConsole(width=width))
    printed = epsearch("report", NAME, "--out", out)
    assert printed.status == 0
    own = {"path": out / NAME / "report.html"}
    here = printed.out.replace(f" --out {out}", "")  # which nobody needs beside a service
    assert get(client, f"studies/{NAME}/outcome", width=width, **own).text == here
    assert "OUT/first/report.html" in get(client, f"studies/{NAME}/outcome", width=1000).text
    assert "\x1b[" in get(client, f"studies/{NAME}/outcome", width=width, colours=True).text
    shown = epsearch("show", NAME, "--out", out)
    # The service names its folders by their options.
    pairs = zip(
        get(client, f"studies/{NAME}/shown", width=width).text.splitlines(), shown.out.splitlines(), strict=True
    )
    assert all(ours == theirs or re.search("OUT|DATA|CACHE", ours) for ours, theirs in pairs)
    as_json = epsearch("show", NAME, "--out", out, "--json")
    said = get(client, f"studies/{NAME}/shown", format="json").json()
    assert said.keys() == as_json.json.keys() and said["score"] == as_json.json["score"] and str(out) not in str(said)
    outcome = epsearch("report", NAME, "--out", out, "--json")
    said = get(client, f"studies/{NAME}/outcome", format="json", **own).json()
    assert said | {"config": 0} == outcome.json | {"config": 0} and said["report"] == str(own["path"])
    differ = {name for name, value in outcome.json["config"].items() if said["config"][name] != value}
    assert differ <= {"out", "storage", "data_dir"} and str(out) not in str(said["config"])


def test_runs_are_the_same_in_every_form(client):
    tables = {
        "json": pd.DataFrame(get(client, f"studies/{NAME}/runs").json()),
        "csv": pd.read_csv(io.StringIO(get(client, f"studies/{NAME}/runs", format="csv").text)),
        "parquet": pd.read_parquet(io.BytesIO(get(client, f"studies/{NAME}/runs", format="parquet").content)),
    }
    first = tables["parquet"]
    assert len(first) == get(client, f"studies/{NAME}").json()["members"] > 0
    for name, table in tables.items():
        assert [*table.columns] == [*first.columns], name
        for column in first.columns:
            if pd.api.types.is_float_dtype(first[column]):
                pd.testing.assert_series_equal(
                    table[column].astype(float), first[column].astype(float), check_exact=False, rtol=1e-14
                )
            else:
                assert [*table[column].astype(str)] == [*first[column].astype(str)], (name, column)


@pytest.mark.slow
def test_figures_have_their_data(client):
    figures = get(client, f"studies/{NAME}/figures").json()
    assert len({one["name"] for one in figures}) == len(figures) > 2
    for one in figures:
        assert one["caption"] and one["drawing"]["data"] and one["tables"]
        assert get(client, f"studies/{NAME}/figures/{one['name']}").json() == one
    answer = client.get(f"{API}/studies/{NAME}/figures/nothing")
    assert answer.status_code == 404 and "has no figure 'nothing'; it has: " in answer.json()["detail"]


@pytest.mark.slow
def test_the_report_may_run_the_scripts_that_stand_in_it_alone(client):
    report = get(client, f"studies/{NAME}/report")
    said = report.headers["content-security-policy"]
    assert said == policy(report.content) and said.startswith(
        "sandbox allow-scripts allow-downloads; default-src 'none'"
    )
    allowed = set(re.findall(r"'sha256-([^']+)'", said))
    scripts = re.findall(r"<script([^>]*)>(.*?)</script>", report.text, re.DOTALL)
    run = [text for attributes, text in scripts if "type=" not in attributes or "javascript" in attributes]
    assert run and allowed == {base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in run}
    assert not any("src=" in attributes for attributes, _ in scripts)
    assert not re.search(r"<[^>]+\son\w+=", re.sub(r"<script.*?</script>", "", report.text, flags=re.DOTALL))


def test_what_has_not_begun_has_nothing_to_report(client):
    for path in ("runs", "figures", "figures/x", "report", "outcome"):
        answer = client.get(f"{API}/studies/waiting/{path}")
        assert answer.status_code == 404 and "has not begun" in answer.json()["detail"], path
    assert "waiting" in get(client, "studies/waiting/shown").text
    assert [one["data"]["state"] for one in get(client, "studies/waiting/log").json()] == ["queued"]


def test_what_is_not_there_is_told_with_what_is_meant(client):
    for method, path in [("GET", ""), ("GET", "/log"), ("POST", "/cancel"), ("POST", "/resume"), ("GET", "/report")]:
        answer = client.request(method, f"{API}/studies/waitin{path}")
        assert answer.status_code == 404 and "did you mean 'waiting'?" in answer.json()["detail"]
    assert client.get(f"{API}/compare", params={"study": [NAME, "nothing"]}).status_code == 404


def test_the_ledger_is_counted(client):
    found = get(client, "ledger").json()
    assert found["studies"] == {NAME: found["runs"]} and found["shared"] == [] and found["unused"] == 0


def test_the_same_name_is_the_same_study(client):
    answer = client.post(f"{API}/studies", json=STUDY | {"name": NAME, "points": 4})
    assert answer.status_code == 422 and "points" in answer.json()["detail"]
    answer = client.post(f"{API}/studies", json={"kind": "compare", "name": NAME})
    assert answer.status_code == 422 and "is a study of `epsearch run`" in answer.json()["detail"]
    assert get(client, f"studies/{NAME}").json()["state"] == "finished"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"kind": "walk"}, "no kind 'walk'; known: run, compare, memory, protocols"),
        ({"seedz": 3}, "no option 'seedz'"),
        ({"seeds": -1}, "seeds"),
        ({"cv_tasks": 5, "tasks": 4}, "tasks"),
        ({"priority": 3}, "priority goes into the URL, like ?priority=3; leave it out of the body"),
    ],
)
def test_bad_input_is_one_line(client, given, words):
    for path in ("studies", "plan"):
        answer = client.post(f"{API}/{path}", json=given)
        assert answer.status_code == 422 and words in answer.json()["detail"] and "\n" not in answer.text


@pytest.mark.parametrize("priority", [-1001, 1001, "x", 10**30])
def test_a_priority_is_bounded(client, priority):
    answer = client.post(f"{API}/studies?priority={priority}", json=STUDY | {"name": "another"})
    assert answer.status_code == 422 and "priority" in answer.json()["detail"]


@pytest.mark.slow  # it measures the machine
@pytest.mark.parametrize(
    "kind",
    [
        {},
        {"kind": "compare", "methods": "van,agem"},
        {"kind": "memory", "sizes": "2,3"},
        {"kind": "protocols", "protocols": "cv-tasks,chf"},
    ],
)
def test_a_plan_is_that_of_the_command_line(client, kind):
    given = {name: value for name, value in STUDY.items() if not kind or name in KINDS[kind["kind"]].options()}
    answer = client.post(f"{API}/plan", json=given | kind | {"name": "planned"})
    assert answer.status_code == 200 and answer.json()["study"] == "planned", answer.text
    assert answer.json()["bytes_needed"] > answer.json()["bytes_processes"] > 2**29


@pytest.mark.slow
def test_a_whole_life(tmp_path, monkeypatch):
    """Trained in this process, as the study's own would be; the queue's processes are tried elsewhere."""
    own = settings(tmp_path / "runs")
    study = STUDY | {"name": "mine"}

    def work():
        monkeypatch.setattr("sys.argv", ["job", "mine", "--out", str(own.out), "--data-dir", str(own.data_dir)])
        with pytest.raises(SystemExit) as stop:
            job()
        return stop.value.code

    with client_of(own) as client:

        def now():
            return get(client, "studies/mine").json()

        def post(path, status=200, **query):
            answer = client.post(f"{API}/studies/{path}", params=query, json=query.pop("given", None))
            assert answer.status_code == status, answer.text
            return answer.json()

        submitted = client.post(f"{API}/studies", params={"priority": 3}, json=study)
        assert (submitted.status_code, submitted.json()["state"], submitted.json()["priority"]) == (201, "queued", 3)
        assert client.post(f"{API}/studies", json=study).status_code == 200, "once more is the same"
        assert post("mine/cancel")["state"] == "cancelled"
        more = post("mine/cancel")
        assert (more["state"], more["note"]) == ("cancelled", "study 'mine' was cancelled already")
        assert post("mine/resume", priority=-2)["state"] == "queued" and now()["priority"] == -2
        assert work() == 0 and now()["state"] == "finished" and now()["members"] > 0
        trained = now()["members"]
        log = get(client, "studies/mine/log").json()
        assert {"begin", "state", "records", "progress"} <= {one["kind"] for one in log}
        assert [one["id"] for one in log] == sorted(one["id"] for one in log)
        assert get(client, "studies/mine/log", after=log[2]["id"], most=2).json() == log[3:5]
        assert client.post(f"{API}/studies/mine/cancel").status_code == 409, "it has ended"
        again = client.post(f"{API}/studies", json=study)
        assert (again.status_code, again.json()["state"]) == (200, "finished"), "nothing is trained twice"
        assert again.json()["note"] == "study 'mine' is finished already; nothing to train"

        wrong = client.post(f"{API}/studies/mine/extend", json={"lr": 0.5})
        assert wrong.status_code == 422, wrong.text
        for fixed in ({"name": "other"}, {"kind": "compare"}, {"name": "run"}):
            answer = client.post(f"{API}/studies/mine/extend", json=fixed)
            assert answer.status_code == 422 and "cannot be changed" in answer.json()["detail"]
        grown = client.post(f"{API}/studies/mine/extend", json={"seeds": 3, "name": "mine"})
        assert (grown.status_code, grown.json()["state"]) == (200, "queued"), grown.text
        assert work() == 0 and now()["members"] > trained and now()["config"]["seeds"] == [0, 1, 2]
        assert client.app.state.service.studies.store.queue.submissions()["mine"].given["options"]["runner"] == "local"
        assert client.post(f"{API}/studies/mine/resume").status_code == 200 and work() == 0

        other = client.post(f"{API}/studies", json=study | {"name": "yours", "strategy": "grid"})
        assert other.status_code == 201
        assert client.get(f"{API}/compare", params={"study": ["mine", "yours"]}).status_code in (404, 422)

        for confirm in ("", "yours", "Mine"):
            answer = client.delete(f"{API}/studies/mine", params={"confirm": confirm})
            assert answer.status_code == 422 and "confirm must be the study's name" in answer.json()["detail"]
        assert client.delete(f"{API}/studies/mine").status_code == 422
        members = now()["members"]
        gone = client.delete(f"{API}/studies/mine", params={"confirm": "mine"})
        assert gone.json() == {"name": "mine", "members": members, "shared": 0}
        assert client.get(f"{API}/studies/mine").status_code == 404 and get(client, "ledger").json()["studies"] == {}
        assert (own.out / "mine" / "report.html").exists(), "reports stay"

        audit = [(one["action"], one["study"]) for one in reversed(get(client, "audit").json())]
        actions = ["submit", "cancel", "resume", "extend", "resume", "submit", "delete"]
        assert [action for action, _ in audit] == actions
        assert json.loads(get(client, "audit", most=1).json()[0]["detail"]) == {"members": members}


@pytest.mark.slow
def test_a_study_that_is_trained_is_not_submitted_extended_resumed_or_deleted(tmp_path):
    from tests.support.leases import FAR

    with client_of(with_a_finished_study(tmp_path / "runs")) as client:
        store = client.app.state.service.studies.store
        store.leases.acquire(NAME, FAR)
        asks = [
            ("POST", "studies", STUDY | {"name": NAME}),
            ("POST", f"studies/{NAME}/extend", {"seeds": 3}),
            ("POST", f"studies/{NAME}/resume", None),
            ("DELETE", f"studies/{NAME}?confirm={NAME}", None),
        ]
        for method, path, body in asks:
            answer = client.request(method, f"{API}/{path}", json=body)
            detail = answer.json()["detail"]
            assert answer.status_code == 409 and ("far" in detail or "is being trained" in detail)
        assert get(client, f"studies/{NAME}").json()["state"] == "running"
        assert client.post(f"{API}/studies/{NAME}/cancel?deadline=0").json()["state"] == "cancelling"
        assert [one["action"] for one in get(client, "audit").json()] == ["cancel"]


@pytest.mark.slow
def test_two_searches_side_by_side(tmp_path):
    from epsearch import api
    from epsearch.preparation.build import build
    from epsearch.study.kinds import Search

    own = with_a_finished_study(tmp_path / "runs")
    given = {name: value for name, value in STUDY.items() if name != "kind"}
    api.run(build(Search, given | {"out": own.out, "name": "other", "strategy": "random"}))
    with client_of(own) as client:
        page = client.get(f"{API}/compare", params={"study": [NAME, "other"]})
        assert page.status_code == 200 and "other" in page.text
        assert page.headers["content-security-policy"] == policy(page.content)
        assert client.get(f"{API}/compare", params={"study": [NAME]}).status_code == 422
        shared = get(client, "ledger").json()
        assert shared["shared"] and shared["shared"][0]["studies"] == sorted([NAME, "other"])


@pytest.mark.slow
def test_what_is_damaged_in_the_ledger_is_told_and_ends_nothing(tmp_path):
    own = with_a_finished_study(tmp_path / "runs")
    ledgers.execute(own.out, "UPDATE epsearch_studies SET config = '['")
    with client_of(own, raises=False) as client:
        client.post(f"{API}/studies", json=STUDY | {"name": "waiting"})
        ledgers.execute(own.out, "UPDATE epsearch_queue SET given = '{\"options\": 3}'")
        lines = {one["name"]: one for one in get(client, "studies").json()["studies"]}
        assert {*lines} == {NAME, "waiting"} and lines[NAME]["kind"] == "–"
        for path in ("", "/runs", "/report", "/figures", "/shown", "/outcome"):
            answer = client.get(f"{API}/studies/{NAME}{path}")
            assert answer.status_code == 422 and "\n" not in answer.json()["detail"], (path, answer.text)
        answer = client.get(f"{API}/studies/waiting")
        assert answer.status_code == 422 and "submit it again" in answer.json()["detail"]
        assert get(client, "ledger").status_code == 200


@pytest.mark.slow
def test_what_is_kept_of_a_study_is_made_again_where_something_is_new(tmp_path):
    with client_of(with_a_finished_study(tmp_path / "runs")) as client:
        findings = client.app.state.service.results
        first = findings.get(NAME)
        assert findings.get(NAME) is first
        store = client.app.state.service.studies.store
        store.queue.submit(NAME, {})
        again = findings.get(NAME)
        assert again is not first and [one.key for one in again.records] == [one.key for one in first.records]
        assert findings.get("nothing") is None
