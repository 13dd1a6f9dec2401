"""Sections of the page on performance: whether plans tell the truth, starts, and commands on grown ledgers."""

import statistics
from collections.abc import Sequence

from charts import number, table
from machine import Figures

NEAR = 0.15
"""How far the end of a run that is told may lie from the true one, as a share of the run: the aim."""


def plans(figures: Figures) -> tuple[str, dict[str, str]]:
    """What was planned and told on the way, beside what it took."""
    head = ("study", "told, s", "taken, s", "told / taken", "told, busy", "taken, busy", "told / taken, busy")
    rows: dict[str, list[str]] = {}
    for row in figures["rows"]:
        expected, taken = (statistics.median(row[part]) for part in ("told", "taken"))
        ratios = [one / other for one, other in zip(row["told"], row["taken"], strict=True)]
        rows.setdefault(row["study"], [row["study"]]).extend((f"{expected:.0f}", f"{taken:.0f}", _median(ratios)))
    if "parts" not in figures:  # measured before it was kept what was told on the way
        return table(head, list(rows.values())), {}
    on_the_way = "What the line of progress told of the end, over the time that the run took, when so much had passed:"
    shares = [f"{100 * part:.0f} %" for part in figures["parts"]]
    parts = ("study", *shares, *(f"{share}, busy" for share in shares))
    way: dict[str, list[str]] = {}
    for row in figures["rows"]:
        told_then = zip(*row["on_the_way"], strict=True)  # of each part, one of each turn
        way.setdefault(row["study"], [row["study"]]).extend(map(_median, told_then))
    pieces = (table(head, list(rows.values())), on_the_way, table(parts, list(way.values())), _truth(figures))
    return "\n\n".join(pieces), {}


def _truth(figures: Figures) -> str:
    """How often the time to go was true from a quarter of a run on."""
    truths: dict[bool, list[bool | None]] = {False: [], True: []}  # busy -> whether true; None where nothing was told
    for row in figures["rows"]:
        for run in row["on_the_way"]:
            later = (ratio for part, ratio in zip(figures["parts"], run, strict=True) if part >= 0.25)
            truths[row["beside"] > 0] += (None if ratio is None else abs(ratio - 1) <= NEAR for ratio in later)
    alone, busy = (
        f"{some.count(True)} of {len(some)} (nothing told yet: {some.count(None)})" for some in truths.values()
    )
    return (
        f"From a quarter of a run on, the end that was told lies within {100 * NEAR:.0f} % of the truth in {alone} "
        f"looks at runs on a machine with nothing else to do, and in {busy} beside other work."
    )


def startup(figures: Figures) -> tuple[str, dict[str, str]]:
    """Parts of a start by runner, whole runs beside the time that their members train, and commands that read."""
    runs = figures["runs"]
    cores = figures["facts"]["cores"]
    trained = [(one["shell"], one["members"] / cores) for one in runs["auto"]]
    ratio = _median([whole / members for whole, members in trained])
    reading = ", ".join(f"`epsearch {words}` {_median(seconds)} s" for words, seconds in figures["reading"].items())
    members = _median([one for _, one in trained])
    text = (
        f"The members of that study train for {members} s on {cores} cores; by the shell it takes {ratio} times as "
        f"long with `--runner auto`. Commands that only read: {reading}."
    )
    return f"{_parts(runs)}\n\n{text}", {}


def own_trainer_start(figures: Figures) -> tuple[str, dict[str, str]]:
    """Seconds of members, a study and a check, with an import by each member and as copies of one; ratios by turn."""
    rows: list[tuple[str, list[float], list[float]]] = []
    members = figures["members"]
    for part, title in (
        ("begun", "member, until it is called"),
        ("first task", "member, until its first task is over"),
    ):
        ways = [
            [statistics.median(one[part] for one in turn if not one["imported"]) for turn in members[way]]
            for way in ("anew", "copied")
        ]
        rows.append((title, *ways))
    for part, title in (("study", "study of 18 members and 2 certificates"), ("check", "`epsearch check`")):
        rows.append((title, figures[part]["anew"], figures[part]["copied"]))
    head = ("seconds", "each imports anew", "copies", "ratio")
    cells = [
        (title, _median(anew), _median(copied), _median([one / other for one, other in zip(anew, copied, strict=True)]))
        for title, anew, copied in rows
    ]
    imports = _median([one["imported"] for turn in members["copied"] for one in turn if one["imported"]])
    equal = [[one["fingerprint"] for one in turn] for way in members.values() for turn in way]
    same = "the same" if all(one == equal[0] for one in equal) else "NOT the same"
    busy = f"load {figures['load'][2]:.0f} on {figures['facts']['cores']} cores"
    text = (
        f"Medians of {figures['turns']} turns with their span, in which both ways alternate, on a machine that had "
        f"much else to do ({busy}): ratios tell more than seconds. The import that copies share took {imports} s. "
        f"Fingerprints of all members were {same} both ways."
    )
    return f"{table(head, cells)}\n\n{text}", {}


def startup_before(figures: Figures) -> tuple[str, dict[str, str]]:
    """The same parts at a revision that had Ray Tune alone."""
    return _parts(figures["runs"]), {}


def _parts(runs: Figures) -> str:
    """A row for each part of a start, a column for each runner."""
    names = [name for name, _ in next(iter(runs.values()))[0]["marks"]]
    rows = [("seconds by the shell, until", *(f"`--runner {runner}`" for runner in runs))]
    for place, name in enumerate(names):
        rows.append((name, *(_median([one["marks"][place][1] for one in runs[runner]]) for runner in runs)))
    rows.append(("the command has ended", *(_median([one["shell"] for one in runs[runner]]) for runner in runs)))
    return table(rows[0], rows[1:])


def _median(values: Sequence[float | None]) -> str:
    """The median with its span; a dash where nothing was told."""
    known = sorted(one for one in values if one is not None)
    if not known:
        return "–"
    span = f" ({known[0]:.2f}…{known[-1]:.2f})" if len(known) > 1 else ""
    return f"{statistics.median(known):.2f}{span}"


def grown(figures: Figures) -> tuple[str, dict[str, str]]:
    """Processor seconds of commands, beside those of an older revision where it was measured."""
    before = figures["before"]
    head = ("command", "before", "now", "now / before") if before else ("command", "now")
    rows = []
    for row in figures["rows"]:
        now, then = (row["seconds"].get(name) for name in (".", before))
        compared = then and (number(statistics.median(then)), number(statistics.median(now)), _ratio(now, then))
        rows.append((f"{row['command']} ({row['ledger']})", *(compared or (number(statistics.median(now)),))))
    text = (
        f"*studies*: a ledger of {figures['studies']} studies; *members*: one of a study of {figures['members']:,}. "
        f"Processor seconds of the whole command, medians of {figures['turns']} turns"
    )
    return f"{table(head, rows)}\n\n{text}{f'; before: revision {before}' if before else ''}.", {}


def _ratio(now: Sequence[float], then: Sequence[float]) -> str:
    """Of medians."""
    return f"{statistics.median(now) / statistics.median(then):.2f}"
