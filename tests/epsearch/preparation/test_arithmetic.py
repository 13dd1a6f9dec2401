"""Which numeric path a study takes, and that it keeps it."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from epsearch import api
from epsearch.failures.errors import UsageError
from epsearch.findings import listing
from epsearch.preparation import arithmetic
from epsearch.preparation.arithmetic import fastest_here, numeric_path
from epsearch.preparation.data import open_evaluation
from epsearch.session import session
from trainers.engines.compiled.sparse import without_zeros
from trainers.numeric_path import NumericPath
from trainers.persistence import checked_files


@pytest.fixture
def measured(monkeypatch):
    """What has been measured from now on; it is always oneDNN's path that is the fastest."""
    from trainers.engines import pixel_choice

    found = []
    monkeypatch.setattr(
        pixel_choice, "fastest_path", lambda *about: found.append(about) or NumericPath(products="onednn")
    )
    return found


def damaged(content):
    """A file in all ways in which it may be damaged."""
    for at in range(0, len(content), 5):
        yield content[:at]
        yield content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
    yield content * 2
    yield b"no JSON"
    yield b"[" * 100_000
    yield json.dumps({"any": 3}).encode()


def test_the_fastest_is_measured_once_a_machine(cache, measured):
    assert arithmetic.fastest_here(64, (256,), 0.52) == "cpu-float32-onednn"
    assert arithmetic.fastest_here(64, (256,), 0.47) == "cpu-float32-onednn"
    assert measured == [(64, (256,), 0.5)]
    assert arithmetic.fastest_here(784, (256,), 0.5) == "cpu-float32-onednn" and len(measured) == 2
    assert arithmetic.fastest_here(64, (256,), 0.5) == "cpu-float32-onednn" and len(measured) == 2


@pytest.mark.parametrize("begun_with", [None, "cpu-float32-onednn-sparse-subtracted"])
def test_a_compiled_path_without_numba_is_one_line(small_study, monkeypatch, begun_with):
    """Given, or the one that a study began with on another machine."""
    monkeypatch.setattr(arithmetic, "find_spec", lambda module: None)
    study = small_study(numeric_path=None if begun_with else "cpu-float32-mkl")
    with pytest.raises(UsageError, match=r"needs Numba, which is not installed here; a study with cpu-float32-torch"):
        arithmetic.numeric_path(study, open_evaluation(study), begun_with)


def test_a_damaged_file_of_paths_is_measured_again(cache, measured, capsys):
    arithmetic.fastest_here(64, (256,), 0.5)
    (file,) = cache.iterdir()
    whole = file.read_bytes()
    for count, content in enumerate(damaged(whole), 2):
        file.write_bytes(content)
        assert arithmetic.fastest_here(64, (256,), 0.5) == "cpu-float32-onednn" and len(measured) == count
        line = f"{file} cannot be used, it is damaged: the fastest arithmetic is measured again\n"
        assert capsys.readouterr() == ("", line) and file.read_bytes() == whole


@pytest.mark.parametrize("path", ["cuda-float32", "cpu-float32-torch", "cpu-float64-mkl", ""])
def test_a_path_of_another_machine_is_measured_again(cache, measured, capsys, path):
    arithmetic.fastest_here(64, (256,), 0.5)
    (file,) = cache.iterdir()
    whole = file.read_bytes()
    named = checked_files.contents(file, arithmetic.MARK).replace(b"cpu-float32-onednn", path.encode())
    checked_files.write(file, arithmetic.MARK, named)
    assert arithmetic.fastest_here(64, (256,), 0.5) == "cpu-float32-onednn" and len(measured) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and f"numeric-paths names {path!r}, which cannot be used here; known: cpu-" in err
    assert file.read_bytes() == whole


def test_where_there_is_no_numba_nothing_compiled_is_taken(cache, measured, capsys, monkeypatch):
    arithmetic.fastest_here(64, (256,), 0.5)
    monkeypatch.setattr(arithmetic, "find_spec", lambda name: None)
    arithmetic.fastest_here(64, (256,), 0.5)
    assert len(measured) == 2 and "names 'cpu-float32-onednn', which cannot be used here" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("content", [b'{"any": "cuda-float32"}', b"[" * 100_000])
def test_commands_survive_a_damaged_file_of_paths(cache, epsearch, small_options, measured, content):
    cache.mkdir()
    (cache / "numeric-paths").write_bytes(content)
    at = small_options.index("--numeric-path")
    answer = epsearch("run", *small_options[:at], *small_options[at + 2 :], "--seeds", 1, "--repeats", 1, "--quiet")
    assert answer.status == 0 and "Traceback" not in answer.err
    assert answer.err.count("is damaged: the fastest arithmetic is measured again") == 1


@pytest.mark.slow
def test_a_cache_that_cannot_be_written_stops_nothing(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EPSEARCH_CACHE", str(tmp_path / "file"))
    assert NumericPath.parse(arithmetic.fastest_here(64, (16,), 0.5)).device == "cpu"


@pytest.fixture
def timed(monkeypatch):
    """A function that says how many seconds each way takes from now on; it returns the ways that were compared."""
    from trainers.engines import pixel_choice

    def take(**seconds):
        compared = []

        def measure(ways, turns=1):
            for work in ways.values():
                work()
            compared.append(list(ways))
            return {name: seconds[name] for name in ways}

        pixel_choice.fastest_path.cache_clear()
        monkeypatch.setattr(pixel_choice, "seconds", measure)
        return compared

    yield take
    pixel_choice.fastest_path.cache_clear()


SAME = {"whole": 1.0, "lazy": 1.0}


def test_sparse_inputs_are_chosen_where_they_are_clearly_faster_only(timed):
    from trainers.engines.pixel_choice import fastest_path

    timed(mkl=1.0, onednn=1.0, dense=1.2, sparse=1.0, **SAME)
    assert fastest_path(1568, (256,), 0.02).sparse
    compared = timed(mkl=1.0, onednn=1.0, dense=1.1, sparse=1.0, **SAME)
    assert not fastest_path(1568, (256,), 0.02).sparse
    assert compared == [["mkl", "onednn"], ["dense", "sparse"], ["whole", "lazy"]]


def test_sparse_inputs_that_cannot_be_faster_are_not_measured(timed):
    from trainers.engines.pixel_choice import fastest_path

    compared = timed(mkl=1.0, onednn=1.0, **SAME)
    assert not fastest_path(1568, (256,), 0.9).sparse
    assert not fastest_path(64, (256,), 0.02).sparse
    assert compared == [["mkl", "onednn"], ["whole", "lazy"]] * 2


def test_steps_that_make_less_are_chosen_where_they_are_clearly_faster_only(timed):
    """Under one name, whatever products the other steps would take: they take none."""
    from trainers.engines.pixel_choice import fastest_path

    timed(mkl=1.0, onednn=0.5, whole=1.2, lazy=1.0)
    assert fastest_path(64, (24, 16), 0.9) == NumericPath(products="mkl", lazy=True)
    timed(mkl=1.0, onednn=0.5, whole=1.1, lazy=1.0)
    assert fastest_path(64, (24, 16), 0.9) == NumericPath(products="onednn")


@pytest.mark.parametrize(("onednn", "products"), [(0.8, "onednn"), (0.95, "mkl"), (1.2, "mkl")])
def test_other_products_are_chosen_where_they_are_clearly_faster_only(timed, onednn, products):
    from trainers.engines.pixel_choice import fastest_path

    timed(mkl=1.0, onednn=onednn, **SAME)
    assert fastest_path(64, (256,), 0.9).products == products


def test_the_median_turn_counts_and_the_first_does_not(monkeypatch):
    """By a clock that shows what each turn takes: the first compiles, and once the machine does something else."""
    from trainers.engines import pixel_choice

    takes = iter([50.0, 1.0, 9.0, 2.0])
    clock = [0.0]
    monkeypatch.setattr(pixel_choice, "now", lambda: clock[0])

    def work():
        clock[0] += next(takes)

    assert pixel_choice.seconds({"one": work}, turns=3) == {"one": 2.0}


@pytest.mark.slow
def test_a_fiftieth_of_the_pixels_is_faster_than_all_of_them():
    """On every machine, and by far."""
    from trainers.engines.pixel_choice import fastest_path

    fastest_path.cache_clear()
    assert fastest_path(1568, (256,), 0.02) not in (NumericPath(products=name) for name in ("mkl", "onednn"))


def test_a_given_path_wins(small_study):
    study = small_study(numeric_path="cpu-float32-mkl-sparse")
    assert arithmetic.numeric_path(study, open_evaluation(study)[0], "cpu-float32-onednn") == "cpu-float32-mkl-sparse"


@pytest.mark.slow
def test_a_study_keeps_the_path_it_began_with(small_study, epsearch, tmp_path):
    study = small_study(numeric_path="cpu-float32-mkl-sparse", name="mine")
    first = api.run(study)
    again = api.run(small_study(numeric_path=None, name="mine"))
    assert first.effort.trained > 0 and again.effort.trained == 0
    assert again.results.config["numeric_path"] == "cpu-float32-mkl-sparse"
    loop = listing.load("mine", study.storage, study.out)
    assert loop.done and loop.study.numeric_path == "cpu-float32-mkl-sparse"


@pytest.mark.slow
def test_another_path_under_the_same_name_is_refused(small_study):
    api.run(small_study(name="mine"))
    with pytest.raises(UsageError, match="numeric_path"):
        api.run(small_study(name="mine", numeric_path="cpu-float32-onednn"))


@pytest.mark.parametrize("path", ["cuda-float32", "cuda-tf32"])
def test_a_path_of_another_device_is_refused(small_study, path):
    with pytest.raises(UsageError, match=f"numeric-path '{path}' does not fit device 'cpu' with precision 'float32'"):
        api.run(small_study(numeric_path=path))


@pytest.mark.parametrize("kind", ["sparse", "lazy"])
def test_lists_of_more_pixels_than_they_can_number_are_refused(small_study, kind):
    name, most = f"cpu-float32-mkl-{kind}", 2**16
    study = small_study(numeric_path=name)
    assert numeric_path(study, SimpleNamespace(inputs=most)) == name
    line = f"{name}' has lists for images of at most 65,536 pixels, got 65,537; cpu-float32-mkl takes any"
    with pytest.raises(UsageError, match=line):
        numeric_path(study, SimpleNamespace(inputs=most + 1))
    with pytest.raises(ValueError, match="at most 65,536 of them, got 65,537"):
        without_zeros(np.zeros((1, most + 1), dtype=np.uint8), np.zeros(256, dtype=np.float32))


@pytest.mark.slow
def test_lists_that_cannot_be_are_not_measured(timed):
    from trainers.engines.pixel_choice import fastest_path

    compared = timed(mkl=1.0, onednn=1.0)
    assert fastest_path(2**16 + 1, (4,), 0.1) == NumericPath(products="mkl")
    assert fastest_path(64, (2**16 + 1,), 0.1) == NumericPath(products="mkl")
    assert compared == [["mkl", "onednn"]] * 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cpu",
        "cpu-float32",
        "cpu-float32-mkl-dense",
        "cpu-float32-mkl-sparse-lazy",
        "cpu-float32-torch-lazy",
        "cpu-float32-torch-sparse",
        "cpu-tf32-mkl",
        "cuda-float32-mkl",
        "cpu-float32-blas",
        "subtracted",
    ],
)
def test_other_names_are_refused(text):
    with pytest.raises(ValueError, match="no numeric path"):
        NumericPath.parse(text)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("cpu-float32-mkl", NumericPath(products="mkl")),
        ("cpu-float32-onednn-sparse", NumericPath(products="onednn", sparse=True)),
        ("cpu-float32-mkl-lazy", NumericPath(products="mkl", lazy=True)),
        ("cpu-float32-onednn-lazy-subtracted", NumericPath(products="onednn", lazy=True, subtracted=True)),
        ("cpu-float32-torch", NumericPath()),
        ("cuda-float32", NumericPath("cuda")),
        ("cuda-tf32", NumericPath("cuda", "tf32")),
        ("cpu-float32-mkl-sparse-subtracted", NumericPath(products="mkl", sparse=True, subtracted=True)),
        ("cpu-float32-torch-subtracted", NumericPath(subtracted=True)),
        ("cuda-tf32-subtracted", NumericPath("cuda", "tf32", subtracted=True)),
    ],
)
def test_names_of_paths(text, path):
    assert NumericPath.parse(text) == path and str(path) == text


@pytest.mark.slow
def test_published_arithmetic_is_another_result(small_study):
    """The subtraction has keys of its own, and is only taken where it is asked for."""
    study = small_study(numeric_path="cpu-float32-mkl-subtracted", certify=0)
    api.run(study)
    with session.open_store(f"sqlite:///{study.out / 'epsearch.sqlite'}") as store:
        (row,) = store.studies()
        assert row.config["numeric_path"] == "cpu-float32-mkl-subtracted"
    assert "subtracted" not in fastest_here(64, (256,), 0.5)
