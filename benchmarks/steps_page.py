"""Sections of the page on performance: where the time of a CPU step goes, and steps by numeric path."""

from typing import Any

from charts import number, table

Found = dict[str, Any]


def profile(found: Found) -> tuple[str, dict[str, str]]:
    """Microseconds of a member-step by part, a column for each reference batch."""
    runs = {run["memory_batch"]: {row["part"]: row["us"] for row in run["rows"]} for run in found["runs"]}
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
    paths = ", ".join(dict.fromkeys(f"`{run['path']}`" for run in found["runs"]))
    about = f"One member, one thread; path {paths}; median of {found['turns']} turns."
    rates = ", ".join(f"{rate:.0f} ({name})" for name, rate in found["row_rates"].items())
    return f"{text}\n\n{about}\n\nRows of weights, in GB/s, by which of them the first layer reads: {rates}.", {}


def paths(found: Found) -> tuple[str, dict[str, str]]:
    """Microseconds of a member-step: a row a case, a column a numeric path, the fastest of a row in bold."""
    cases: dict[tuple[Any, ...], dict[str, float]] = {}
    for row in found["rows"]:
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
        f"{text}\n\nMicroseconds of processor time of a member-step, one thread; median of {found['turns']} turns.",
        {},
    )
