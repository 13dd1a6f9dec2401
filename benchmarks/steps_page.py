"""Sections of the page on performance: where the time of a CPU step goes, steps by numeric path, limits on images."""

from statistics import median
from typing import Any

from charts import number, percent, table
from machine import Figures


def profile(figures: Figures) -> tuple[str, dict[str, str]]:
    """Microseconds of a member-step by part, a column for each reference batch."""
    runs = {run["memory_batch"]: {row["part"]: row["us"] for row in run["rows"]} for run in figures["runs"]}
    names = list(dict.fromkeys(name for parts in runs.values() for name in parts))
    body = [
        [
            name,
            *(
                f"{number(us)} ({100 * us / sum(parts.values()):.0f} %)"
                for parts in runs.values()
                for us in [parts.get(name, 0.0)]
            ),
        ]
        for name in names
    ]
    body.append(["whole step", *(number(sum(parts.values())) for parts in runs.values())])
    text = table(["microseconds of a member-step", *(f"reference batch {batch}" for batch in runs)], body)
    paths = ", ".join(dict.fromkeys(f"`{run['path']}`" for run in figures["runs"]))
    about = f"One member, one thread; path {paths}; median of {figures['turns']} turns."
    rates = ", ".join(f"{rate:.0f} ({name})" for name, rate in figures["row_rates"].items())
    return f"{text}\n\n{about}\n\nRows of weights, in GB/s, by which of them the first layer reads: {rates}.", {}


def paths(figures: Figures) -> tuple[str, dict[str, str]]:
    """Microseconds of a member-step: a row a case, a column a numeric path, the fastest of a row in bold."""
    cases: dict[tuple[Any, ...], dict[str, float]] = {}
    for row in figures["rows"]:
        case = row["images"], row["memory_batch"] or "none (EWC)", row["members"], row["vectors"]
        cases.setdefault(case, {})[row["path"].removeprefix("cpu-float32-")] = row["us"]["median"]
    names = list(next(iter(cases.values())))
    body = []
    for case, times in cases.items():
        cells = {name: number(us) for name, us in times.items()}
        fastest = min(times, key=times.__getitem__)
        cells[fastest] = f"**{cells[fastest]}**"
        body.append([*map(str, case), *(cells[name] for name in names)])
    text = table(["images", "reference batch", "members", "vectors", *names], body)
    return (
        f"{text}\n\nMicroseconds of processor time of a member-step, one thread; median of {figures['turns']} turns.",
        {},
    )


def limits(figures: Figures) -> tuple[str, dict[str, str]]:
    """Steps of a residual network beside plain loops: a row a way to take them, columns for each reference batch."""
    columns, shares, rates = {}, [], []
    for run in figures["rows"]:
        seconds = {name: median(times) for name, times in run["seconds"].items()}
        base = seconds["channels last"]
        columns[run["reference_batch"]] = {
            name: (number(value), f"{base / value:.2f}", f"{run['gflop'] / value:.0f}")
            for name, value in seconds.items()
        }
        alone = seconds["convolutions alone"]
        shares.append(percent(alone / base))
        rates.append(percent(run["gflop"] / alone / run["product_gflops"]))
    names = list(next(iter(columns.values())))
    head = ["one step", *(f"{what}, {size}" for size in columns for what in ("seconds", "ratio", "GFLOP/s"))]
    body = [[name, *(cell for column in columns.values() for cell in column[name])] for name in names]
    tests = ", ".join(f"{rate:.0f} of {size}" for size, rate in figures["tests"].items())
    return (
        f"{table(head, body)}\n\nWith reference batches of {' and '.join(map(str, columns))}, processor seconds of one "
        f"thread, medians of {figures['turns']} turns; *ratio*: speed over that of channels last. Convolutions take "
        f"{' and '.join(shares)} of the time of channels last, and do {' and '.join(rates)} of the FLOP a second of a "
        f"matrix product of 1,024 × 1,024. torch.compile took {number(figures['compile_seconds'])} s for each size of "
        f"batch. Images tested a second, by batches: {tests}.",
        {},
    )
