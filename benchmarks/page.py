"""Makes eight pages of docs/, with plots, from benchmarks/results/*.json and templates.

uv run python benchmarks/page.py
"""

import json
from collections.abc import Callable
from pathlib import Path
from string import Template
from textwrap import fill

import along_page
import cluster_page
import parabola_page
import protocols_page
import races_page
import reproduction_page
import scenarios_page
import service_page
import split_cifar_page
import steps_page
import strategies_page
import time_page
from charts import Range, bars, number, panels, percent, table
from machine import Figures

ROOT = Path(__file__).parent.parent
RESULTS, TEMPLATE = ROOT / "benchmarks" / "results", ROOT / "benchmarks" / "performance.md.in"
STRATEGIES, PARABOLA, COMPARISON, SCENARIOS, REPRODUCTION, ALONG, PROTOCOLS = (
    ROOT / "benchmarks" / f"{name}.md.in"
    for name in ("strategies", "parabola", "comparison", "scenarios", "reproduction", "along", "protocols")
)


def pages(results: Path = RESULTS) -> dict[str, str]:
    """Path under the root -> text, for the pages and every plot."""
    made: dict[str, str] = {}
    for page, template, sections in (
        ("performance", TEMPLATE, SECTIONS),
        ("strategies", STRATEGIES, {"strategies": strategies_page.SECTION, "races": races_page.SECTION}),
        ("parabola", PARABOLA, {"parabola": parabola_page.SECTION, "split_cifar": split_cifar_page.SECTION}),
        ("comparison", COMPARISON, {"split_cifar": split_cifar_page.EVALUATION}),
        ("scenarios", SCENARIOS, {"scenarios": scenarios_page.SECTION}),
        ("reproduction", REPRODUCTION, {"reproduction": reproduction_page.SECTION, "packs": reproduction_page.ANSWERS}),
        ("along", ALONG, {"forecasts": along_page.SECTION}),
        ("protocols", PROTOCOLS, {"protocols": protocols_page.SECTION}),
    ):
        parts = {"every_protocol": protocols_page.every_protocol()}
        for name, (section, command) in sections.items():
            file = results / f"{name}.json"
            figures = json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
            text, plots = section(figures) if figures else (missing(name, command), {})
            parts[name] = wrapped(text if figures is None else f"{text}\n\n{facts(figures['facts'])}")
            made |= {f"docs/images/{plot}": svg for plot, svg in plots.items()}
        made[f"docs/{page}.md"] = Template(template.read_text(encoding="utf-8")).substitute(parts)
    return made


def wrapped(text: str) -> str:
    """Paragraphs in lines of 120 characters; tables, headings and pictures as they are.

    >>> wrapped("| a table |\\n\\n" + "word " * 30).splitlines()[-1]
    'word word word word word word'
    """
    return "\n\n".join(
        part if part.startswith(("|", "#", "![")) else fill(part, 120, break_long_words=False, break_on_hyphens=False)
        for part in text.split("\n\n")
    )


def missing(name: str, command: str) -> str:
    """How to fill a section; the GPU's also shows its empty rows."""
    hint = f"Not measured yet: `{command}` writes `benchmarks/results/{name}.json`; run `benchmarks/page.py` after it."
    empty = table(["run", *GPU_COLUMNS], [[run, *"–" * len(GPU_COLUMNS)] for run in GPU_RUNS])
    return f"{hint}\n\n{empty}" if name == "gpu" else hint


def facts(figures: Figures) -> str:
    """What a section was measured on, in one line."""
    where = figures["gpu"] or f"{figures['processor']}, {figures['cores']} cores, {figures['vectors']}"
    versions = ", ".join(f"{name} {figures[name]}" for name in ("torch", "numpy", "numba", "ray") if name in figures)
    when = figures["measured"][:10]
    return f"*Measured on {where}; Python {figures['python']}, {versions}; commit {figures['commit']}, {when}.*"


def spread(figures: Figures) -> Range:
    return Range(figures["median"], figures["low"], figures["high"])


def with_range(figures: Figures) -> str:
    return f"{number(figures['median'])} ({number(figures['low'])}…{number(figures['high'])})"


def throughput(figures: Figures) -> tuple[str, dict[str, str]]:
    """For each size of the reference batch a table and a plot; then the ceilings."""
    parts, plots = [], {}
    arrangements = list(dict.fromkeys(row["arrangement"] for row in figures["rows"]))
    best = arrangements[-1]
    for batch in dict.fromkeys(row["memory_batch"] for row in figures["rows"]):
        rows = [row for row in figures["rows"] if row["memory_batch"] == batch]
        names = list(dict.fromkeys(row["candidate"] for row in rows))
        cell = {(row["candidate"], row["arrangement"]): row for row in rows}
        body = [
            (name, *(with_range(cell[name, each]["member_steps_per_s"]) for each in arrangements), number(ratio))
            for name in names
            for ratio in [cell[name, best]["ratio_to_plain"]]
        ]
        rates = [
            (
                name,
                number(row["gflops"]),
                percent(row["share_of_step_ceiling"]),
                percent(row["share_of_large_product"]),
                number(row["gflops_without_zeros"]),
            )
            for name in names
            for row in [cell[name, best]]
        ]
        plot = f"throughput-{batch}.svg"
        ranges = {name: [spread(cell[name, each]["member_steps_per_s"]) for each in arrangements] for name in names}
        plots[plot] = bars(arrangements, ranges, "member-steps per second: median, lowest and highest turn")
        parts += [f"### Reference batch {batch}", f"![Member-steps per second, reference batch {batch}](images/{plot})"]
        parts.append("Member-steps per second, median (lowest…highest turn); last column: ratio to the plain loop.")
        parts.append(table(["candidate", *arrangements, f"× plain, {best}"], body))
        head = ["candidate", "GFLOP/s", "of the step's products", "of a 2048³ product", "GFLOP/s without zeros"]
        parts += [f"Achieved rates, {best}:", table(head, rates)]
    ceilings = [[row["what"], row["arrangement"], number(row["gflops"]), row["routine"]] for row in figures["ceilings"]]
    parts += ["### Ceilings", table(["what", "arrangement", "GFLOP/s", "fastest"], ceilings)]
    parts.append(
        f"{figures['turns']} turns of {figures['steps']} member-steps (at least 100 a member; fewer for Avalanche "
        f"{figures['avalanche']}); {percent(figures['density'])} of the pixels are not zero."
    )
    return "\n\n".join(parts), plots


def per_trial(figures: Figures) -> tuple[str, dict[str, str]]:
    rows = [
        [row["candidate"], with_range(row["whole_run"]), with_range(row["training_alone"])] for row in figures["rows"]
    ]
    head = ["member-steps per second", "whole run", "training alone"]
    size = (
        f"11 values of ε × {figures['seeds']} seed(s), 3 tasks × {figures['examples']:,} images: "
        f"{figures['member_steps']:,} member-steps; median (lowest…highest) of {figures['turns']} turn(s)."
    )
    ranges = {row["candidate"]: [spread(row["whole_run"]), spread(row["training_alone"])] for row in figures["rows"]}
    plot = bars(["whole run", "training alone"], ranges, "member-steps per second")
    text = [size, table(head, rows), "![Member-steps per second of whole runs](images/per-trial.svg)"]
    return "\n\n".join(text), {"per-trial.svg": plot}


AXES = {
    "tasks": "tasks",
    "members": "members",
    "memory_batch": "reference batch",
    "memory": "memory per class and task",
    "pixels": "pixels",
}


def scaling(figures: Figures) -> tuple[str, dict[str, str]]:
    series = {
        label: [(row["value"], spread(row["ms_per_member_step"])) for row in figures["rows"] if row["axis"] == axis]
        for axis, label in AXES.items()
    }
    rows = [
        [label, " · ".join(f"{x:g}: {number(value.median)}" for x, value in points)] for label, points in series.items()
    ]
    usual = ", ".join(f"{AXES[axis]} {value}" for axis, value in figures["usual"].items())
    text = [
        "![Milliseconds per member-step as one quantity grows](images/scaling.svg)",
        table(["what grows", "milliseconds per member-step"], rows),
        f"The constant quantities: {usual}; {figures['steps']} steps a task, {figures['threads']} thread(s), "
        f"{figures['turns']} turns.",
    ]
    return "\n\n".join(text), {"scaling.svg": panels(series, "ms")}


def memory(figures: Figures) -> tuple[str, dict[str, str]]:
    rows = [[row["process"], f"{row['megabytes']:,.0f}"] for row in figures["rows"]]
    return f"{table(['process', 'peak MB'], rows)}\n\nTasks of {figures['examples']:,} images.", {}


def decoding(figures: Figures) -> tuple[str, dict[str, str]]:
    head = ("images", "threads", "images/s", "images/processor second")
    rates = ("images_per_second", "images_per_processor_second")
    rows = [[row["images"], str(row["threads"]), *(f"{row[rate]:,.0f}" for rate in rates)] for row in figures["rows"]]
    seconds, chosen = figures["seconds"], figures["threads_chosen"]
    busy = ", which hides what a second thread gains" if figures["load_before"] > 0.5 else ""
    threads = "; ".join(f"{name}: {count}" for name, count in chosen.items())
    return (
        f"{table(head, rows)}\n\nThreads that are used by default: {threads}. Listing a zip file of 60,000 images "
        f"takes {seconds['list_60000_files']:.1f} s, mapping a finished cache {1000 * seconds['open_cache']:.1f} ms. "
        f"Before the measurement other processes took {percent(figures['load_before'])} of the cores{busy}."
    ), {}


def image_steps(figures: Figures) -> tuple[str, dict[str, str]]:
    head = ("network", "pixels", "reference batch", f"{figures['members']} members", "member-steps/s", "GFLOP/s")
    rows = [
        (
            row["network"],
            str(row["pixels"]),
            str(row["reference_batch"] or "none"),
            row["members"],
            f"{row['member_steps_per_second']:.2f}",
            f"{row['gflops']:.0f}",
        )
        for row in figures["rows"]
    ]
    load = f"Before the measurement other processes took {percent(figures['load_before'])} of the cores."
    return f"{table(head, rows)}\n\n{load}", {}


GPU_RUNS = ("one member alone", "evaluation, ε = 0.07185 and A-GEM", "whole search")
GPU_COLUMNS = ("members", "tasks", "steps a task", "seconds", "member-steps/s")
GPU_COLUMNS += ("TFLOP/s", "of float32 product", "GB/s", "of a copy")


GRAPHS = {True: "the same", False: "not the same", None: "none"}


def gpu(figures: Figures) -> tuple[str, dict[str, str]]:
    """Runs against the ceilings, one member alone, and float64 agreement."""
    top, plain, agreement = figures["ceilings"], figures["plain"], figures["agreement"]
    runs = [
        (
            row["what"],
            *(f"{row[key]:,}" for key in ("members", "tasks", "steps")),
            number(row["seconds"]),
            number(row["member_steps_per_s"]),
            number(row["flops"] / 1e12),
            percent(row["flops"] / top["float32_product_flops"]),
            number(row["bytes_per_s"] / 1e9),
            percent(row["bytes_per_s"] / top["copy_bytes"]),
        )
        for row in figures["runs"]
    ]
    checks = [
        [name, f"{one['plain']:.0e}", f"{one['projected']:.0e}", GRAPHS[one["graphs"]], number(one["seconds"])]
        for name, one in figures["self_checks"].items()
    ]
    limits = [[name.replace("_", " "), number(value / 1e12)] for name, value in top.items()]
    text = [
        table(["run", *GPU_COLUMNS], runs),
        f"Plain PyTorch loop, one member: {number(plain['steps_per_s'])} steps/s over {plain['steps']:,} steps; at "
        f"that rate the whole search would take {plain['search_extrapolated_s'] / 3600:.1f} h (extrapolated).",
        table(["ceiling", "10¹² per second"], limits),
        f"Against float64, {agreement['steps']} steps, ε = {', '.join(map(str, agreement['epsilons']))}: parameters "
        f"differ by at most {agreement['largest_parameter_difference']:.1e} of their norm, accuracies on "
        f"{agreement['tests']:,} images by at most {100 * agreement['largest_accuracy_difference']:.2f}, shares "
        f"of projected steps by at most {100 * agreement['largest_projected_share_difference']:.2f} percentage points. "
        f"Data: {figures['data']}; precision of matrix products: {figures['precision']}.",
        table(["self-check", "plain steps", "projected steps", "graphs", "seconds"], checks),
    ]
    return "\n\n".join(text), {}


SECTIONS: dict[str, tuple[Callable[[Figures], tuple[str, dict[str, str]]], str]] = {
    "throughput": (throughput, "uv run python benchmarks/throughput.py"),
    "step_profile": (steps_page.profile, "uv run python benchmarks/step_profile.py"),
    "cpu_paths": (steps_page.paths, "uv run python benchmarks/cpu_paths.py"),
    "per_trial": (per_trial, "uv run python benchmarks/per_trial.py"),
    "scaling": (scaling, "uv run python benchmarks/scaling.py"),
    "memory": (memory, "uv run python benchmarks/memory.py"),
    "decoding": (decoding, "uv run python benchmarks/decoding.py"),
    "plans": (time_page.plans, "uv run python benchmarks/plans.py FOLDER"),
    "startup": (time_page.startup, "uv run python benchmarks/startup.py FOLDER"),
    "own_trainer_start": (time_page.own_trainer_start, "uv run python benchmarks/own_trainer_start.py FOLDER"),
    "grown": (time_page.grown, "uv run python benchmarks/grown.py FOLDER"),
    "startup_before": (time_page.startup_before, "uv run python benchmarks/startup.py FOLDER --before"),
    "cluster": (cluster_page.section, "uv run python benchmarks/cluster.py"),
    "service": (service_page.section, "uv run python benchmarks/service.py"),
    "image_steps": (image_steps, "uv run python benchmarks/image_steps.py"),
    "image_limits": (steps_page.limits, "uv run python benchmarks/image_limits.py"),
    "image_steps_gpu": (image_steps, "python benchmarks/gpu.py"),
    "gpu": (gpu, "python benchmarks/gpu.py"),
}


def main() -> None:
    for path, text in pages().items():
        (ROOT / path).write_text(text, encoding="utf-8")
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
