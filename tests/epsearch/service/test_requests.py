"""What clients send: any study comes back as the same one, mutated ones are refused in one line, curl lines work."""

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from epsearch import cli
from epsearch.doors.door import Request
from epsearch.doors.service import _options
from epsearch.failures.errors import UsageError
from epsearch.preparation.build import build
from epsearch.service.requests import SERVER_SET, submitted_study
from epsearch.service.web.forms import again
from epsearch.study.file import read
from epsearch.study.kinds import KINDS
from results.ledger.store import Store
from tests.fuzz.test_study_files import PYTHON_SAYS, VALUES, files, wrong
from tests.support.ledgers import NAME, query
from tests.support.packs import OWN, own
from tests.support.service import STUDY, client_of, listening, with_a_finished_study
from tests.support.service import settings as of_service

API = "/api/v1"
PLAIN = {"device": "cpu", "runner": "local"}
KINDS_OF = {
    "run": {
        "search": ["epsilon=0..0.5", "lr=log:0.01..0.1", "memory=5,10,25", "epsilon=0..1,lr=log:0.01..1"],
        "interval": ["0.1..0.4", [0.0, 0.25]],
        "strategy": ["narrowing", "grid", "random", "gp", "tpe"],
        "points": [3, 5],
        "repeats": [1, 2],
        "seeds": [3, "0,2,5", [4, 1]],
        "eval_seeds": [2, "7,8"],
        "race": [True, False],
        "score_on": ["cv", "eval"],
        "protocol": ["cv-tasks", "first-3", "end-of-training", "seen-tasks"],
        "method": ["soft_agem", "ewc", "er"],
        "lr": [0.05, "0.2"],
        "memory": [7],
        "certify": [0, 2],
        "reference_rows": ["joint,iid", ["iid"], "none"],
        "time_budget": ["90s", "2h"],
    },
    "compare": {
        "methods": ["agem,soft_agem", ["van", "ewc"], "all"],
        "tune": [True, False],
        "settings": ["soft_agem.epsilon=0.2", "ewc.strength=10 agem.lr=0.05"],
        "from_pack": ["er-pmnist-200", "ewc-smnist-task"],
        "seeds": [2, "1..3"],
        "examples_per_task": [100, "all"],
        "lr": [0.05],
    },
    "memory": {
        "methods": ["agem,soft_agem", "er"],
        "sizes": ["1,5", [2, 4, 8]],
        "seeds": [2],
        "lr": [0.05],
        "numeric_path": ["cpu-float32-mkl"],
    },
    "protocols": {
        "protocols": ["cv-tasks,first-3", ["current-task", "25-percent"], "default"],
        "search": ["epsilon=0..0.5", "lr=0.01,0.1", "memory=5,10,25"],
        "method": ["soft_agem", "ewc", "er"],
        "points": [3, 5],
        "seeds": [2, "1..3"],
        "orders": [1, 3],
        "validation": [0.2, "0.1", 0],
    },
}


def described():
    """A study of any kind, by some of its options in one of the forms that they may have."""
    return st.sampled_from(sorted(KINDS_OF)).flatmap(
        lambda kind: st.fixed_dictionaries(
            {"kind": st.just(kind)},
            optional={name: st.sampled_from(values) for name, values in KINDS_OF[kind].items()},
        )
    )


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """Of a service that trains nothing."""
    with client_of(of_service(tmp_path_factory.mktemp("service") / "runs"), raises=False) as made:
        yield made


@pytest.mark.slow
def test_a_pack_of_a_client_is_kept_as_it_is_and_opens_nothing_here(client, tmp_path):
    """The command sends what is in the file; a form made of the study names a pack that everybody has, alone."""
    service, asked_for = client.app.state.service, PLAIN | {"kind": "compare"}
    sent = Request(KINDS["compare"], {"from_pack": own(), "tasks": 4, "out": tmp_path})
    answer = client.post(f"{API}/studies", json=asked_for | _options(sent))
    assert answer.status_code == 201, answer.text
    study = submitted_study(service.studies.store.queue.submissions()[answer.json()["name"]], service.settings)
    assert study.from_pack.as_data() == own(margin=3.0, changed=["tasks"])
    assert "from_pack" not in again(study) and again(study)["hidden"] == "16"
    known = again(build(KINDS["compare"], {"from_pack": "ewc-pmnist-17"}))
    assert known["from_pack"] == "ewc-pmnist-17"
    file = tmp_path / "mine.yaml"
    file.write_text(yaml.safe_dump(OWN), encoding="utf-8")
    for pack in (str(file), own(method="mine:rule"), own(settings={"pretrained": str(file)})):
        assert client.post(f"{API}/studies", json=asked_for | {"from_pack": pack}).status_code == 422, pack


@pytest.mark.slow
def test_any_study_that_was_submitted_is_built_again_as_the_same(client):
    service = client.app.state.service
    accepted = set()

    @settings(max_examples=400, derandomize=True)
    @given(described())
    def same(options):
        own = PLAIN | options
        kind = own.pop("kind")
        try:
            wanted = build(KINDS[kind], own | {"out": service.settings.out, "data_dir": service.settings.data_dir})
        except UsageError as error:
            answer = client.post(f"{API}/studies", json=own | {"kind": kind})
            assert (answer.status_code, answer.json()["detail"]) == (422, " ".join(str(error).split()))
            return
        answer = client.post(f"{API}/studies", json=own | {"kind": kind})
        assert answer.status_code == 201 and answer.json()["name"] == wanted.name, answer.text
        again = submitted_study(service.studies.store.queue.submissions()[wanted.name], service.settings)
        assert type(again) is type(wanted) and again == wanted and again.identity() == wanted.identity()
        assert client.get(f"{API}/studies/{wanted.name}").json()["config"] == {
            name: value for name, value in wanted.to_dict().items() if name not in SERVER_SET
        }
        accepted.add((kind, *sorted(options)))
        # Two that differ in how they are run alone have one name, which is another study's while that waits.
        assert client.delete(f"{API}/studies/{wanted.name}", params={"confirm": wanted.name}).status_code == 200

    same()
    assert {kind for kind, *_ in accepted} == {*KINDS} and len(accepted) > 20
    for name in ("search", "interval", "race", "eval_seeds", "tune", "settings", "sizes"):
        assert any(name in one for one in accepted), f"no study with {name} was tried"


def mutated(count, seed, file):
    """Bodies: a mutated study file as JSON where it can be read as one, else its bytes; `file` is written for that.

    Every other one is without the options that a service sets, which it refuses.
    """
    for number, (kind, content) in enumerate(files(count, seed)):
        file.write_bytes(content)
        try:
            options = read(file).items()
            body = {name: value for name, value in options if number % 2 or name not in SERVER_SET}
            yield kind, json.dumps(body, default=str).encode()
        except (UsageError, ValueError, TypeError):
            yield kind, content


def numbers(folder):
    """Rows of every table that a refused study could have left something in, and files."""
    tables = ("queue", "leases", "events", "audit", "studies", "runs")
    rows = [query(folder, f"SELECT COUNT(*) FROM epsearch_{table}")[0][0] for table in tables]
    return rows, sorted(path.name for path in folder.iterdir() if not path.name.startswith("epsearch.sqlite"))


@pytest.mark.slow
@pytest.mark.parametrize("count", [300, pytest.param(5000, marks=pytest.mark.fuzz)])
def test_mutated_studies_through_the_api(tmp_path, count, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own, wrong_ones, accepted = of_service(tmp_path / "runs"), [], 0
    with client_of(own, raises=False) as client:
        for kind, body in mutated(count, 6, tmp_path / "study.yaml"):
            before = numbers(own.out)
            answer = client.post(f"{API}/studies", content=body, headers={"content-type": "application/json"})
            detail = answer.json().get("detail")
            if answer.status_code == 201:
                accepted += 1
                name = answer.json()["name"]
                submitted_study(client.app.state.service.studies.store.queue.submissions()[name], own)
                gone = client.delete(f"{API}/studies/{name}", params={"confirm": name})
                assert gone.status_code == 200  # the next one has the same name
            elif answer.status_code not in (400, 413, 422) or not isinstance(detail, str) or "\n" in detail:
                wrong_ones.append((kind, answer.status_code, answer.text[:300], body[:2000]))
            elif PYTHON_SAYS in answer.text or numbers(own.out) != before:
                wrong_ones.append((kind, "left something", answer.text[:300], body[:2000]))
        listed = client.get(f"{API}/studies", params={"per_page": 1000})
        assert listed.status_code == 200
    assert not wrong_ones, wrong_ones[:5]
    assert 0 < accepted < count and not (tmp_path / "cache").exists(), "no crash report"


@pytest.mark.slow
@pytest.mark.parametrize("count", [60, pytest.param(5000, marks=pytest.mark.fuzz)])
def test_mutated_studies_through_the_command_line(tmp_path, count, monkeypatch, capsys):
    """The same files; whoever trains one by --config is told the same."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "study.yaml"
    monkeypatch.setattr("sys.argv", ["epsearch", "run", "--config", str(file), "--print-config"])
    for kind, content in files(count, seed=3):
        file.write_bytes(content)
        with pytest.raises(SystemExit) as stop:
            cli.main()
        out, err = capsys.readouterr()
        assert wrong(stop.value.code, out, err) is None, (kind, err, content[:2000])
    assert {one.name for one in tmp_path.iterdir()} <= {"study.yaml", "cache"}


@pytest.mark.parametrize("value", [one for one in VALUES if "postgres" not in one])
def test_odd_values_of_each_option_are_refused_in_one_line(client, value):
    try:
        odd = yaml.safe_load(value)
        text = json.dumps(odd)
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, KeyError):
        odd = text = value
    for option in ("dataset", "seeds", "search", "settings", "name", "kind", "pretrained", "runner"):
        body = json.dumps({"kind": "run", "name": f"{option}-{VALUES.index(value)}", option: odd})
        answer = client.post(f"{API}/studies", content=body, headers={"content-type": "application/json"})
        assert answer.status_code in (200, 201, 422), (option, text, answer.text)


def curl_lines():
    page = (Path(__file__).parents[3] / "docs" / "http-api.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```\n(.*?)```", page, flags=re.DOTALL)
    return [line for block in blocks for line in block.replace("\\\n", " ").splitlines() if line.startswith("curl ")]


@pytest.mark.slow
@pytest.mark.few(4)
@pytest.mark.parametrize("line", curl_lines())
def test_the_lines_of_the_docs_work(tmp_path, line):
    own = with_a_finished_study(tmp_path / "runs")
    with Store.open(own.storage) as store:
        store.queue.submit("waiting", {"kind": "run", "options": STUDY})
    asks_of_all = "/events" in line
    with listening(own) as (address, _):
        words = shlex.split(line.replace("localhost:8470", address.removeprefix("http://")))
        if " -X POST" in line and "cancel" not in line:
            words = [word.replace('"first"', '"second"') for word in words]
        if "cancel" in line:
            words = [word.replace("/first/", "/waiting/") for word in words]
        words[1:1] = ["-sS", "--fail-with-body"]
        with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            if asks_of_all:
                assert process.stdout.readline() and process.poll() is None
                process.kill()
                return
            out, err = process.communicate()
            assert process.returncode == 0, (words, out, err)
    if "-OJ" in line:
        assert len(list(tmp_path.glob("*.csv"))) == 1, [*tmp_path.iterdir()]
    else:
        assert json.loads(out)["name"] in (NAME, "second", "waiting")


def test_the_docs_have_such_lines():
    assert len(curl_lines()) >= 5
