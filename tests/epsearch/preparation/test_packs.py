"""Values of packs in studies: defaults of every command, the same members, and what differs from the pack."""

import json
from pathlib import Path

import pytest
import yaml

import epsearch
from epsearch.failures.errors import UsageError
from epsearch.loop.content import content
from epsearch.loop.jobs import Run
from epsearch.loop.table import table_rows
from epsearch.preparation.build import build, restore
from epsearch.preparation.data import note_pack
from epsearch.service.requests import check_options
from epsearch.service.settings import Settings
from epsearch.study.kinds import Comparison, MemoryStudy, ProtocolStudy, Search
from results.ledger.url import LedgerUrl
from search_spaces.published.pack import load_pack, packs
from tests.support.packs import EXACT, OWN, own
from trainers import Architecture


@pytest.mark.parametrize("name", packs())
def test_every_pack_is_a_study_of_one_row(name):
    pack, study = load_pack(name), build(Comparison, {"from_pack": name})
    (row,) = table_rows(study)
    assert (row.method, study.dataset, len(study.seeds)) == (pack.method, pack.dataset, pack.seeds)
    assert study.from_pack == pack and study.name.startswith(f"compare-{name}-")
    values = vars(row.hyperparameters)
    for setting, value in pack.settings.items():
        found = values[setting] if setting in values else study.value(setting)
        assert found == (tuple(value) if isinstance(value, list) else value), setting
    # Each value is named, so that the study is the same without its pack.
    stored = {"kind": "compare", "study": study.identity(), "numeric_path": None}
    assert restore(stored, study.name, study.out, study.storage).identity() == study.identity()


def test_members_are_those_of_the_same_settings_without_a_pack():
    plain = {
        **{"dataset": "permuted_mnist", "methods": "er", "settings": "er.lr=0.2", "tasks": 20, "cv_tasks": 0},
        **{"batch_size": 128, "memory": 1, "memory_batch": 128, "hidden": "100,100", "start": "xavier", "seeds": 5},
    }
    studies = [build(Comparison, one) for one in ({"from_pack": "er-pmnist-200"}, plain)]
    keys = [content(one, {}, Run("eval", table_rows(one)[0].learner(3))) for one in studies]
    assert keys[0] == keys[1] and studies[0].identity() == studies[1].identity()
    assert studies[0].architecture == Architecture(hidden=(100, 100), start="xavier")


def test_the_command_line_and_files_go_before_a_pack(tmp_path):
    (tmp_path / "study.yaml").write_text("tasks: 6\nmemory: 7\n", encoding="utf-8")
    study = build(Comparison, {"from_pack": own(), "tasks": 5, "seeds": 3}, tmp_path / "study.yaml")
    assert (study.tasks, study.hyperparameters.memory, len(study.seeds), study.hidden) == (5, 7, 3, (16,))
    assert study.from_pack.changed == ("tasks", "memory")  # other seeds are no other settings
    assert build(Comparison, {"from_pack": own(), "tasks": 3}).from_pack.changed == ()
    assert build(Comparison, {"from_pack": own(), "examples_per_task": 50}).from_pack.changed == ("examples-per-task",)


@pytest.mark.parametrize("name", ["ewc-pmnist-17", "ewc-smnist-task", "er-pmnist-200"])
def test_a_study_written_out_is_that_of_its_pack(name, tmp_path):
    """As a file of options, or as a service keeps it: values of the definition are named in it, and change nothing."""
    study = build(Comparison, {"from_pack": name})
    (tmp_path / "study.yaml").write_text(study.to_yaml(places=False), encoding="utf-8")
    assert build(Comparison, {}, tmp_path / "study.yaml") == study and study.from_pack.changed == ()
    other = build(Comparison, {"settings": f"{study.methods[0]}.lr=0.7"}, tmp_path / "study.yaml")
    assert other.from_pack.changed == ("settings",)


def test_other_commands_take_what_they_have_options_for():
    search = build(Search, {"from_pack": "soft-agem-pmnist-17", "points": 4})
    assert (search.method, search.dataset, search.points) == ("soft_agem", "permuted_mnist", 4)
    search = build(Search, {"from_pack": "van-smnist-class", "search": "lr=0.01..0.3", "score_on": "eval"})
    notes: list[str] = []
    note_pack(search, lambda event: notes.append(str(event)))
    assert notes == ["pack van-smnist-class: order-by-seed left out, as epsearch run has no such option"]
    search = build(Search, {"from_pack": own(), "search": "lr=0.01..0.3", "score_on": "eval"})
    for one in (search, build(Comparison, {"from_pack": "derpp-pmnist-200"})):
        note_pack(one, lambda event: notes.append(str(event)))
    assert len(notes) == 1
    assert search.method == "er" and vars(search.learner((0.1,), 0).hyperparameters)["memory"] == 3
    memory = build(MemoryStudy, {"from_pack": own(method="agem"), "sizes": "1,2"})
    assert memory.methods == ("agem",) and memory.settings == (("agem", "lr", 0.1),)
    note_pack(memory, lambda event: notes.append(str(event)))
    assert notes[1:] == ["pack mine: memory left out, as epsearch memory has no such option"]
    protocols = {"from_pack": "van-smnist-class", "search": "lr=0.01..0.3", "protocols": "end-of-training"}
    assert build(ProtocolStudy, protocols).scenario == "class"


def test_a_pack_survives_as_data(tmp_path):
    """As the ledger, files of options and Python have it."""
    study = build(Comparison, {"from_pack": own(), "tasks": 5})
    shown = json.loads(json.dumps(study.to_dict()))["from_pack"]
    stored = {"kind": "compare", "study": study.identity(), "numeric_path": None, "from_pack": shown}
    assert restore(stored, study.name, study.out, study.storage).from_pack == study.from_pack
    (tmp_path / "study.yaml").write_text(study.to_yaml(places=False), encoding="utf-8")
    assert build(Comparison, {}, tmp_path / "study.yaml") == study
    file = tmp_path / "mine.yaml"
    file.write_text(yaml.safe_dump(OWN), encoding="utf-8")
    assert epsearch.Comparison(from_pack=file, tasks=5).from_pack == study.from_pack


@pytest.mark.parametrize(
    ("pack", "line"),
    [
        ("er-pmnist", "no pack 'er-pmnist'; did you mean "),
        ("./mine.yaml", "no pack './mine.yaml'; "),
        (Path("absent.yaml"), "cannot read the pack absent.yaml: No such file or directory"),
        (own(method="err"), "no method 'err'; known: "),
        (own(dataset="permuted_digit"), "no dataset 'permuted_digit'; known: "),
        (own(metric="A_t"), "no metric of pack mine 'A_t'; known: "),
        (
            own(printed=OWN["printed"] | {"spread_is": "std"}),
            "no spread_is of pack mine 'std'; known: sd, population sd, se; did you mean 'sd'?",
        ),
        (own(printed={"mean": 724} | EXACT), "pack mine: mean of A_T in percent must be in [0, 100], got 724"),
        (own(printed={"mean": -1} | EXACT, metric="a_1"), "pack mine: mean of a_1 in percent must be in [0, 100], "),
        (own(printed={"mean": -724} | EXACT, metric="F_T"), "pack mine: mean of F_T in percent must be in [-100, 100]"),
        (own(settings={"memmory": 5}), "pack mine: no setting 'memmory'; did you mean 'memory'?"),
        (own(settings={"out": "/tmp"}), "pack mine: no setting 'out'; "),
        (own(settings={"strength": 5}), "pack mine: no setting 'strength'; "),
        (own(settings={"memory": -1}), "pack mine: memory must be >= 0, got -1"),
        (own(settings={"lr": "fast"}), "pack mine: er.lr must be a number > 0, got 'fast'"),
        (own(name="a/b"), "the name of a pack must be up to 60 letters, digits and . _ -, got 'a/b'"),
    ],
    ids=str,
)
def test_what_is_wrong_is_one_line(pack, line):
    with pytest.raises(UsageError) as error:
        build(Comparison, {"from_pack": pack})
    assert str(error.value).startswith(line) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    "pack",
    [own(method="mine:rule"), own(dataset="folder:/etc"), own(settings={"network": "mine:net"})],
    ids=["method", "dataset", "network"],
)
def test_a_service_runs_no_code_and_reads_no_folder_of_a_pack(pack, tmp_path):
    settings = Settings(LedgerUrl(f"sqlite:///{tmp_path / 'ledger.sqlite'}"), tmp_path, tmp_path)
    with pytest.raises(UsageError, match=r"which this service does not allow|was started without --images"):
        check_options({"from_pack": pack}, settings)
    assert check_options({"from_pack": own()}, settings) == {"from_pack": own()}


def test_a_service_looks_up_the_folder_of_a_pack_below_its_roots(tmp_path, monkeypatch):
    """And not where it was started."""
    for folder in ("images", "elsewhere"):
        (tmp_path / folder / "birds").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "elsewhere")
    ledger = LedgerUrl(f"sqlite:///{tmp_path / 'ledger.sqlite'}")
    settings = Settings(ledger, tmp_path, tmp_path, roots=(tmp_path / "images",))
    allowed = check_options({"from_pack": own(dataset="folder:birds")}, settings)
    assert allowed["from_pack"]["dataset"] == f"folder:{(tmp_path / 'images' / 'birds').resolve()}"


@pytest.mark.parametrize("number", [".nan", ".inf", "-.inf"])
@pytest.mark.parametrize("field", ["margin", "mean"])
def test_numbers_of_a_pack_are_finite(number, field):
    data = yaml.safe_load(yaml.safe_dump(own()))
    (data if field == "margin" else data["printed"])[field] = yaml.safe_load(number)
    with pytest.raises(UsageError, match=rf"{field} must be a number, got"):
        build(Comparison, {"from_pack": data})
