"""Packs: a printed number, the settings that are to reproduce it, and the margin within which that counts as done.

A new pack is a new file in `packs/`, and nothing else; a user's own file is read alike.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from search_spaces.published.fields import Fields, read_yaml

FOLDER = resources.files("search_spaces.published") / "packs"
FIELDS = frozenset({"source", "dataset", "method", "metric", "printed", "margin", "seeds", "settings", "anomalies"})
PRINTED = frozenset({"mean", "spread", "spread_is", "n"})


@dataclass(frozen=True)
class Pack:
    """A printed row, and how to train it."""

    name: str
    """As after `epsearch reproduce`."""
    source: str
    """Paper and table."""
    dataset: str
    """As after --dataset."""
    method: str
    """As after --method."""
    metric: str
    """The printed metric, as "A_T"."""
    mean: float
    """As printed, in the unit of tables: A_T in percent."""
    spread: float | None
    """As printed; None where the source has none, so that the printed mean is taken as exact."""
    spread_is: str | None
    """Kind of the spread: a standard deviation of the sample or the population, or a standard error."""
    n: int | None
    """Runs behind the printed mean; None where the source does not say."""
    margin: float
    """Differences below this one count as none, in the unit of the mean."""
    seeds: int
    """Seeds that are trained unless others are wished."""
    settings: Mapping[str, Any] = field(hash=False)
    """Options and hyperparameters by name; others are as the definition of the dataset has them."""
    anomalies: tuple[str, ...]
    """What is known to differ or to be odd, each in a sentence."""
    changed: tuple[str, ...] = ()
    """Options with other values than the pack's, in a study of it."""

    def as_data(self) -> dict[str, Any]:
        """Returns the pack as JSON, with its name: what `parse_pack` reads."""
        printed = {name: getattr(self, name) for name in ("mean", "spread", "spread_is", "n")}
        others = {name: getattr(self, name) for name in ("name", "source", "dataset", "method", "metric")}
        lists = {"anomalies": list(self.anomalies), **({"changed": list(self.changed)} if self.changed else {})}
        more = {"margin": self.margin, "seeds": self.seeds, "settings": dict(self.settings)}
        return others | {"printed": printed} | more | lists


def packs() -> tuple[str, ...]:
    """Returns the names of all packs, sorted."""
    return tuple(sorted(file.name.removesuffix(".yaml") for file in FOLDER.iterdir() if file.name.endswith(".yaml")))


@cache
def load_pack(name: str) -> Pack:
    """Returns the pack of a name; '-' and '_', upper and lower case are the same. Raises ValueError, one line.

    >>> load_pack("ER_pmnist-200").mean
    72.4
    """
    names, spelling = packs(), name.strip().lower().replace("_", "-")
    if spelling not in names:
        near = difflib.get_close_matches(spelling, names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "; `epsearch reproduce` lists them, a file ends in .yaml"
        raise ValueError(f"no pack {name!r}{hint}")
    return parse_pack(spelling, read_yaml(spelling, (FOLDER / f"{spelling}.yaml").read_text("utf-8")))


def parse_pack(name: str, data: Mapping[str, Any]) -> Pack:
    """Returns a pack from its data. Raises ValueError that names a missing, unknown or malformed field."""
    fields = Fields(f"pack {name}", data)
    fields.must_be(FIELDS)
    printed = fields.section("printed")
    printed.must_be(PRINTED)
    spread, n = printed.read("spread", float | None), printed.read("n", int | None)
    spread_is = printed.read("spread_is", str | None)
    if spread is not None and (spread < 0 or n is None or n < 2 or spread_is is None):
        got = f"{spread:g} with n {n or 'null'} and spread_is {spread_is or 'null'}"
        raise ValueError(f"pack {name}: a spread must be >= 0, with n >= 2 and spread_is; got {got}")
    if (margin := fields.read("margin", float)) <= 0:
        raise ValueError(f"pack {name}: margin must be > 0, got {margin:g}")
    texts = {key: fields.read(key, str) for key in ("source", "dataset", "method", "metric")}
    return Pack(
        name=name,
        **texts,
        mean=printed.read("mean", float),
        spread=spread,
        spread_is=spread_is,
        n=n,
        margin=margin,
        seeds=fields.read("seeds", int),
        settings=fields.section("settings").data,
        anomalies=fields.read("anomalies", tuple[str, ...]),
    )
