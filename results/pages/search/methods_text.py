"""Texts about a search for a paper: the method's formula, a paragraph for the methods section, BibTeX."""

from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from results.labels import (
    OF_POINTS,
    STREAM_LABELS,
    count_text,
    dataset_label,
    interval_text,
    method_label,
    network_label,
    number_text,
    signed_text,
    strategy_label,
    stream_label,
)
from results.metrics import METRICS, mean_std
from results.points import AGEM, LEFT_OUT, SOFT_AGEM, Point, is_number, parameter_label, point_text, value_text
from results.search import SearchResults
from results.search_tables import baseline_pair
from results.statistics.paired import sign_flip_name, sign_flip_p
from results.verdict import along_tasks, wording
from results.verdict.assessment import trust
from results.verdict.judge import REJECTED, objection
from results.verdict.peak import is_inert

DIGITS = METRICS["A_T"].digits
A_AGEM = "a_agem"
PAPER = """\
@misc{hu2020gradient,
  title = {Gradient Episodic Memory with a Soft Constraint for Continual Learning},
  author = {Hu, Guannan and Zhang, Wu and Ding, Hu and Zhu, Wenhao},
  year = {2020},
  eprint = {2011.07801},
  archivePrefix = {arXiv}
}"""
"""The paper of ε-SOFT-GEM and A-A-GEM, which also describes the search for ε."""
SOFTWARE = """\
@software{epsearch,
  title = {epsearch: hyperparameter search for continual learning},
  author = {{The epsearch authors}},
  version = {VERSION},
  license = {MIT}
}"""


def methods_paragraph(results: SearchResults) -> str:
    """Returns a paragraph for the methods section of a paper, as plain text.

    What was searched, by which rule, with which seeds; that search and evaluation share no task; the result of the
    evaluation and the verdict; the version of the software.
    """
    parts = (_search(results), _setup(results), _protocol(results), _rule(results), _evaluation(results))
    return " ".join(filter(None, (*parts, *_checks(results))))


def bibtex(results: SearchResults) -> str:
    """Returns BibTeX entries of the paper of ε-SOFT-GEM and of this version of the software."""
    return f"{PAPER}\n\n{SOFTWARE.replace('VERSION', _version(results))}\n"


def formula(results: SearchResults) -> str:
    """Returns the update of the searched method in a line of plain text; "" for a method without one here.

    g is the gradient on the mini-batch, g_ref that on the reference batch; ĝ and ĝ_ref have unit length.
    """
    config = results.config
    if results.trainer_repeats is not None:  # a plug-in trainer may have any name
        return ""
    if results.method == AGEM:
        return "g̃ = g if ⟨g, g_ref⟩ ≥ 0, else g − (⟨g, g_ref⟩ / ⟨g_ref, g_ref⟩) g_ref"
    satisfied = "ĝ" if config.get("satisfied") == "unit" else "g"
    if results.method == A_AGEM and "a_agem_scale" not in results.parameters:
        otherwise = "(g + g_ref) / 2" if config.get("a_agem_scale") == "raw" else "(ĝ + ĝ_ref) / 2"
        return f"g̃ = {satisfied} if c ≥ 0, else {otherwise}; c = ⟨ĝ, ĝ_ref⟩"
    if results.method != SOFT_AGEM or {"trigger", "scale", "satisfied"} & {*results.parameters}:
        return ""
    threshold = "ε" if config.get("trigger") == "epsilon" else "0"
    otherwise = "g − (c − ε) g_ref" if config.get("scale") == "raw" else "ĝ − (c − ε) ĝ_ref"
    at_zero = "; for ε = 0: A-GEM" if "epsilon" in results.parameters else ""
    return f"g̃ = {satisfied} if c ≥ {threshold}, else {otherwise}; c = ⟨ĝ, ĝ_ref⟩{at_zero}"


def _version(results: SearchResults) -> str:
    """Returns the version of the software that wrote the facts of the report, else that which is installed."""
    if known := results.facts.get("epsearch"):
        return known
    try:
        return version("epsearch")
    except PackageNotFoundError:  # a bare checkout of the packages
        return "unknown"


def _search(results: SearchResults) -> str:
    """Returns the sentence on method, dataset, software, interval and strategy."""
    searched = f"{wording.searched_parameters(results)} of {method_label(results.method)}"
    tool, domains = f"epsearch {_version(results)}", " and ".join(_domains(results))
    return (
        f"We searched {searched} on {dataset_label(results.dataset)} with {tool}, over {domains}, by "
        f"{strategy_label(results.strategy)} ({wording.rounds(results)}, {wording.count_points(results)})."
    )


def _domains(results: SearchResults) -> Iterator[str]:
    """Yields what was searched, one for each parameter."""
    for i, (name, ends) in enumerate(zip(results.parameters, results.domain, strict=True)):
        if ends is not None:
            scale = " on a logarithmic axis" if name in results.log else ""
            yield f"{parameter_label(name)} in {interval_text(ends)}{scale}"
        else:
            tried = dict.fromkeys(point[i] for search_round in results.rounds for point in search_round.points)
            yield f"{parameter_label(name)} in {{{', '.join(map(value_text, tried))}}}"


def _setup(results: SearchResults) -> str:
    """Returns the sentence on what was trained for each value: objective, stream, seeds, network and sizes."""
    tasks = f" of {count_text(results.search[0].tasks, 'task')}" if results.search else ""
    stream = stream_label(results.config, STREAM_LABELS["cv" if results.score_on == "cv" else "eval"])
    raced = results.race is not None
    text = (
        f"Each value was trained on {'an' if stream[0] in 'aeiou' else 'a'} {stream}{tasks} with "
        f"{'up to ' if raced else ''}{_seeds(results.seeds, results.orders)}"
        f"{', fewer where a race dropped it,' if raced else ','} and scored by its mean {_objective(results)}"
        f"{_inside(results)}{_held_out(results)}"
    )
    if results.stages:
        text += f", and chosen by the A_T {along_tasks.in_brief(results)}"
    settings = ", ".join(_settings(results)) if results.trainer_repeats is None else ""
    return f"{text} ({settings})." if settings else f"{text}."


def _protocol(results: SearchResults) -> str:
    """Returns the sentences on what the choice may see; "" where nobody says so."""
    name, seen = results.config.get("protocol"), results.seen
    return f"The search protocol {name} {seen[0].lower()}{seen[1:]}" if seen else ""


def _held_out(results: SearchResults) -> str:
    """Returns the examples that chose, in words; "" for test sets."""
    if not (share := results.config.get("validation")):
        return ""
    return f" on {100 * share:g} % of each task's training examples, held out of training and memory for every run"


def _inside(results: SearchResults) -> str:
    """Returns the tests inside tasks that the objective needs, in words; "" for other objectives."""
    measure = next((record.content.get("measure") for record in results.search), None)
    if results.objective not in OF_POINTS or not measure:
        return ""
    steps, images = count_text(measure["every"], "step"), count_text(measure["images"], "test image")
    return f", measured every {steps} on {images} of each task"


def _objective(results: SearchResults) -> str:
    return "final average accuracy A_T" if results.objective == "A_T" else results.objective


def _settings(results: SearchResults) -> Iterator[str]:
    """Yields the network and the sizes of training that were not searched themselves."""
    names = {
        **{"lr": "learning rate", "batch_size": "mini-batches of", "memory": "memory of"},
        "memory_batch": "reference batches of",
    }
    units = {"memory": " examples per class and task"}
    config: Mapping[str, Any] = results.config
    if "network" in config:
        yield network_label(config)
    for name, label in names.items():
        if name not in results.parameters and is_number(config.get(name, "")):
            yield f"{label} {config[name]:g}{units.get(name, '')}"
    for name, words in (("epochs", "passes over each task"), ("steps", "steps a task")):
        if name not in results.parameters and isinstance(config.get(name), int) and config[name] != LEFT_OUT.get(name):
            yield f"{config[name]} {words}"
    for name, words in (
        ("optimizer", "optimizer {}"),
        ("momentum", "momentum {}"),
        ("weight_decay", "weight decay {}"),
        ("lr_factor", "a learning rate {} times as large with each task"),
    ):
        if name not in results.parameters and config.get(name, LEFT_OUT[name]) != LEFT_OUT[name]:
            yield words.format("Adam" if config[name] == "adam" else value_text(config[name]))
    if isinstance(config.get("examples_per_task"), int):
        yield f"{config['examples_per_task']} training examples per task"


def _seeds(seeds: tuple[int, ...], orders: int = 1) -> str:
    """Returns seeds in words, and in how many orders of tasks, where there are several.

    >>> _seeds((0, 1, 2)), _seeds((0, 5)), _seeds((7,))
    ('3 seeds (0 to 2)', '2 seeds (0, 5)', '1 seed (7)')
    """
    row = len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[-1] + 1))
    listed = f"{seeds[0]} to {seeds[-1]}" if row else ", ".join(map(str, seeds))
    several = f" in each of {orders} orders of the tasks" if orders > 1 else ""
    return f"{count_text(len(seeds), 'seed')} ({listed}){several}"


def _rule(results: SearchResults) -> str:
    """Returns the sentence on the choice and its rule."""
    chosen = wording.heading(point_text(results.parameters, results.chosen))
    if is_inert(results):
        chosen = point_text(results.parameters, results.chosen)
        return f"All values had the same score bit for bit, so {chosen} was kept."
    if not results.by_curve:
        return f"{chosen} was chosen, by the scores of the {wording.others(results)}."
    among = "" if results.at_summit else ", among the values that no paired test puts below the best tried one"
    return (
        f"{chosen} was chosen where a Gaussian process through all scores, with an effect of each seed, has the "
        f"highest mean{among}."
    )


def _evaluation(results: SearchResults) -> str:
    """Returns the sentences on the evaluation, also where it has not run."""
    if not results.evaluation:
        return "The choice has not been evaluated yet."
    metric = results.objective
    if results.score_on == "eval":
        return "The choice was made on the evaluation stream itself, so its scores there are biased upwards."
    tasks = count_text(results.evaluation[0].tasks, "other task" if results.score_on == "cv" else "task")
    tested = f"On {_test_data(results)} of {tasks} with {_seeds(results.eval_seeds, results.orders)}"
    chosen = f"{_score(results, results.chosen)} with {point_text(results.parameters, results.chosen)}"
    pair = baseline_pair(results, evaluation=True)
    if results.baseline is None or not pair.n:
        return f"{tested}, {metric} was {chosen} (mean ± standard deviation over seeds)."
    other = f"{_score(results, results.baseline)} with {wording.baseline(results)}"
    text = (
        f"{tested}, {metric} was {chosen} and {other} "
        f"(mean ± standard deviation over seeds); the paired difference was {signed_text(pair.mean, DIGITS)}"
    )
    if pair.n < 2:
        return f"{text} percentage points with one seed."
    text += f" ± {number_text(pair.error, DIGITS)} percentage points (mean ± standard error"
    p = f"; {sign_flip_name(pair.n)}, p = {sign_flip_p(pair.differences):.2g}" if any(pair.differences) else ""
    return f"{text}{p})."


def _test_data(results: SearchResults) -> str:
    return "an evaluation stream" if results.score_on == "cv" else "the test sets"


def _score(results: SearchResults, point: Point) -> str:
    """Returns mean ± standard deviation of what was maximised in the evaluation of a point."""
    row = mean_std(results.evaluation_of(point), [results.objective])
    metric = METRICS[results.objective]
    text = metric.mean_std_text(row[f"{results.objective}_mean"], row[f"{results.objective}_std"])
    return f"{text} {metric.display_unit}".strip()


def _checks(results: SearchResults) -> Iterator[str]:
    """Yields the sentences on the verdict, the disjointness, and further evaluations on the same stream."""
    yield trust(results).verdict.text
    if objection(results) == REJECTED:
        yield f"The choice was rejected by the evaluation: {wording.baseline_name(results)} is to be preferred."
    if results.disjointness:
        yield f"Overlap of search and evaluation, by hashes of their data: {results.disjointness}."
    others = [choice for choice in results.evaluated_choices if not choice.mine]
    if others:
        yield f"{count_text(len(others), 'other choice')} had been evaluated on the same evaluation stream."
