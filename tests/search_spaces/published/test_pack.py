"""Packs: every file, and one line for whatever is wrong in one."""

from importlib import resources

import pytest
import yaml

from results.paper.reference import PRINTED_METHODS, printed_row
from search_spaces.published.pack import load_pack, packs, parse_pack

PAPER = "ε-SOFT-GEM paper, table 3"


def data(name="er-pmnist-200"):
    text = (resources.files("search_spaces.published") / "packs" / f"{name}.yaml").read_text("utf-8")
    return yaml.safe_load(text)


@pytest.mark.parametrize("name", packs())
def test_every_pack_states_source_margin_and_spread(name):
    one = load_pack(name)
    assert one.name == name and one.source and one.margin > 0 and one.seeds >= 2 and 0 < one.mean < 100
    # What a spread is and how many runs it has is known, or the pack says that the printed mean counts as exact.
    unknown = "The spread that the source prints is not transcribed here."
    assert (one.spread is None) == (one.spread_is is None) == (unknown in one.anomalies)
    assert parse_pack(name, {key: one.as_data()[key] for key in data(name)}) == one


def test_the_papers_rows_are_those_of_its_table():
    """Every row of Permuted MNIST, with mean, spread and what the spread is."""
    own = {one.method: one for one in map(load_pack, packs()) if one.source == PAPER}
    printed = {method: printed_row("permuted_mnist", method).get("A_T") for method in PRINTED_METHODS}
    assert own.keys() == {method for method, cell in printed.items() if cell is not None} and len(own) == 9
    for method, one in own.items():
        assert (one.mean, one.spread) == (printed[method].mean, printed[method].std)
        assert (one.dataset, one.metric, one.spread_is, one.n) == ("permuted_mnist", "A_T", "population sd", 5)


def test_names_are_found_as_people_write_them():
    assert load_pack(" ER_PMNIST-200") == load_pack("er-pmnist-200")
    with pytest.raises(ValueError, match=r"no pack 'er-pmnst-200'; did you mean 'er-pmnist-200'\?"):
        load_pack("er-pmnst-200")
    with pytest.raises(ValueError, match="no pack 'nothing'; `epsearch reproduce` lists them"):
        load_pack("nothing")


def changed(**fields):
    def change(pack):
        return {**pack, **fields}

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda pack: {"margn" if name == "margin" else name: value for name, value in pack.items()},
            "pack mine: unknown fields margn; did you mean 'margin'?",
        ),
        (lambda pack: {name: pack[name] for name in pack if name != "source"}, "pack mine: missing fields source"),
        (changed(margin=0), "pack mine: margin must be > 0, got 0"),
        (changed(margin="1"), "pack mine: margin must be a number, got '1'"),
        (changed(seeds=0), "pack mine: seeds must be a whole number >= 1, got 0"),
        (changed(settings=None), "pack mine: settings must be a mapping, got None"),
        (changed(anomalies="none"), "pack mine: anomalies must be a list, got 'none'"),
        (changed(printed={"mean": 1}), "pack mine: printed: missing fields n, spread, spread_is"),
        (
            changed(printed={"mean": 1, "spread": 2, "spread_is": None, "n": 3}),
            "pack mine: a spread must be >= 0, with n >= 2 and spread_is; got 2 with n 3 and spread_is null",
        ),
        (
            changed(printed={"mean": 1, "spread": 2, "spread_is": "sd", "n": None}),
            "pack mine: a spread must be >= 0, with n >= 2 and spread_is; got 2 with n null and spread_is sd",
        ),
    ],
)
def test_what_is_wrong_is_one_line(change, message):
    with pytest.raises(ValueError) as error:
        parse_pack("mine", change(data()))
    assert str(error.value).startswith(message) and "\n" not in str(error.value)
