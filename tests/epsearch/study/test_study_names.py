"""Names of studies: the same ones are refused behind every door, before anything is made; generated ones never are."""

import pytest

import epsearch as package
from epsearch import api
from epsearch.failures.errors import UsageError
from epsearch.preparation.build import build, check_name
from epsearch.reuse import transfer
from epsearch.study import limits
from epsearch.study.kinds import REQUESTS, Search
from epsearch.study.parsers import OWN_FOLDERS, study_name
from results.archive import Archive
from results.ledger.store import Store
from results.ledger.url import LedgerUrl
from tests.support import ledgers
from tests.support.ledgers import finished
from tests.support.service import STUDY, client_of, settings

OF_LEDGER = ("", "-wal", "-shm", "-journal", ".v2", ".v2.part", ".v3-wal")
REFUSED = {
    **dict.fromkeys(("--help", "-rf", "-", "-v1", ".", "..", ".hidden", "mine.", "a..", "..."), "must not begin with"),
    **dict.fromkeys(
        ("CON", "nul", "Aux.csv", "prn", "com1", "LPT9.tar.gz", "COM¹", "lpt³.x", "coM0"), "is a device of"
    ),
    **dict.fromkeys((*OWN_FOLDERS, "Strategies"), "is a folder of epsearch itself"),
    **{f"epsearch.sqlite{end}": "is a file of the ledger epsearch.sqlite" for end in OF_LEDGER},
    "EPSEARCH.SQLITE-WAL": "is a file of the ledger epsearch.sqlite",
    "日" * 90: "must have at most 232 bytes in UTF-8, got 270",
    "𠀀" * 64: "must have at most 232 bytes in UTF-8, got 256",
    **dict.fromkeys(("", "a b", "a/b", "a\\b", "mine ", "a\x00", "a\n", "e\u0301", "a:b"), "must consist of"),
}
TAKEN = [
    "Console",
    "com",
    "com10",
    "con-1",
    "nullary",
    "lpt",
    "conx.csv",
    "mine-wal",
    "epsearch.sqlite2",
    "ε",
    "日" * 77,
]
TAKEN += ["epsearch", "a-", "a..b", "my.strategies", "epsearch.sqlite-walk", "x" * 100]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with client_of(settings(tmp_path_factory.mktemp("service") / "runs")) as made:
        yield made


@pytest.mark.few(12)
@pytest.mark.parametrize("name", REFUSED)
def test_a_name_is_refused_behind_every_door_before_anything_is_made(tmp_path, client, epsearch, name):
    given = {option: value for option, value in STUDY.items() if option != "kind"}
    out = tmp_path / "runs"
    for make in (lambda: build(Search, given | {"name": name}), lambda: package.Search(**given, name=name)):
        with pytest.raises(UsageError, match=REFUSED[name]) as caught:
            make()
        assert "\n" not in str(caught.value) and len(str(caught.value).split()) < 25
    if name:  # an empty one is none in a form and a request
        answer = client.post("/api/v1/studies", json=STUDY | {"name": name})
        assert answer.status_code == 422 and REFUSED[name] in answer.json()["detail"]
    if name and name == name.strip():  # forms leave out what is around it
        form = {option: str(value) for option, value in STUDY.items()} | {"name": name, "do": "submit"}
        assert client.post("/new", data=form, headers={"origin": "http://localhost"}).status_code == 422
    if name.isprintable():
        file = tmp_path / "study.yaml"
        file.write_text(f'name: "{name}"\n'.replace("\\", "\\\\"), encoding="utf-8")
        for words in (["--config", file], [f"--name={name}"]):
            said = epsearch("run", *words, "--dataset", "permuted_digits", "--out", out)
            assert said.status == 2 and REFUSED[name] in said.err and said.err.count("\n") == 1, said.err
    assert not out.exists() and client.get("/api/v1/studies").json()["total"] == 0
    assert all(one.is_file() for one in client.app.state.service.settings.out.iterdir())


@pytest.mark.parametrize("name", TAKEN)
def test_other_names_are_taken_and_fit_a_file_system(tmp_path, name):
    assert build(Search, {"name": name, "out": tmp_path}).name == name
    (tmp_path / f"{name}.parquet").touch()


@pytest.mark.parametrize("file", ["my.db", "L", "a.v1"])
@pytest.mark.parametrize("end", OF_LEDGER)
def test_files_of_the_ledger_are_no_names_whatever_it_is_called(tmp_path, file, end):
    storage = LedgerUrl.of_file(tmp_path / "runs" / file)
    here = {"out": tmp_path / "x" / ".." / "runs", "storage": storage, "name": (file + end).upper()}
    with pytest.raises(UsageError, match=f"is a file of the ledger {file}; choose another name"):
        build(Search, here)
    assert build(Search, here | {"out": tmp_path / "elsewhere"}).name == here["name"]
    assert build(Search, here | {"name": f"{file}2"}).name == f"{file}2"


def test_sqlite_itself_says_which_files_are_its_own(tmp_path):
    """A folder of such a name takes the ledger from everybody; so it must be refused."""
    for end in ("-wal", "-journal", "-shm"):
        out = tmp_path / end
        (out / f"epsearch.sqlite{end}").mkdir(parents=True)
        with pytest.raises(UsageError):
            check_name(f"epsearch.sqlite{end}", out, LedgerUrl.of_file(out / "epsearch.sqlite"))


@pytest.mark.parametrize(
    "folder", ["日本語" * 40, "-rf", ".hidden", "CON", "nul.images", "--help", "x" * 250, "𠀀" * 60]
)
def test_a_name_that_nobody_chose_is_one_that_may_be_chosen(tmp_path, folder):
    made = build(Search, {"dataset": f"folder:{tmp_path / folder}", "out": tmp_path}).name
    assert study_name(made, "name") == made and len(made.encode()) <= limits.NAME_BYTES
    check_name(made, tmp_path, LedgerUrl.of_file(tmp_path / "epsearch.sqlite"))


def test_folders_of_ours_are_refused():
    assert api.SIDE_BY_SIDE in OWN_FOLDERS


@pytest.mark.slow
@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["CON", "-rf", "日" * 90, "mine."])
def test_a_study_that_has_such_a_name_can_be_read_and_deleted_but_not_trained(tmp_path, epsearch, name):
    out, url = tmp_path / "runs", LedgerUrl.of_file(tmp_path / "runs" / "epsearch.sqlite")
    transfer.export_study(ledgers.NAME, tmp_path / "plain.zip", LedgerUrl.of_file(finished() / "epsearch.sqlite"), out)
    out.mkdir()
    with Archive(tmp_path / "plain.zip") as archive, Store.open(url) as store:  # as an earlier version has stored it
        store.import_rows(transfer._rename(archive, name), REQUESTS)
    assert name in [one["name"] for one in epsearch("list", "--out", out, "--json").json]
    assert epsearch("show", "--out", out, "--", name).status == 0
    assert epsearch("export", "--out", out, "--", name, tmp_path / "one.zip").status == 0
    taken = epsearch("import", tmp_path / "one.zip", "--out", tmp_path / "other")
    assert taken.status == 2 and "a study's name" in taken.err
    assert epsearch("import", tmp_path / "one.zip", "--out", tmp_path / "other", "--name", "fine").status == 0
    with client_of(settings(out)) as client:
        assert client.get(f"/api/v1/studies/{name}").json()["members"] > 0
        assert client.post(f"/api/v1/studies/{name}/extend", json={"seeds": 3}).status_code == 422
    assert epsearch("delete", "--yes", "--out", out, "--", name).status == 0
