"""The answer of a search in a few short lines, for the end of a run and the first screen of a report."""

import math
import re
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from results.inert import INERT
from results.labels import count_text, number_text, signed_text
from results.metrics import METRICS
from results.points import point_text, value_text
from results.search import SearchResults
from results.search_tables import baseline_pair, evaluation_table, printed_methods
from results.statistics.paired import ALPHA, Paired, sign_flip_p, smallest_sign_flip_p
from results.statistics.power import LEAST_FOR_A_TEST
from results.verdict import along_tasks, certificates, claim, references, wording
from results.verdict.assessment import Assessment, trust
from results.verdict.curve import MANY_SEEDS, MARGIN
from results.verdict.judge import REJECTED, objection

NOTHING_CHOSEN = "nothing was chosen, as the scores do not differ"
COMMAND = re.compile(r": (epsearch [^:]+)$")
"""The command with which a caution ends."""


class Summary(NamedTuple):
    """The answer of a search, each part on a line of its own; "" for a part that is missing."""

    answer: str
    """The chosen point and the confidence set of the best one."""
    tasks: str
    """Heading of the table: the sizes of the evaluation; "" before it has run."""
    metrics: tuple[str, ...]
    """Metrics of the table, with units: what was maximised, A_T and F_T, each once."""
    rows: tuple[tuple[str, ...], ...]
    """A label, then a text a metric: the evaluated points, the paper's rows, and the paired difference."""
    trust: str
    """How far to trust the answer."""
    next_step: str
    """The next command, which begins with the name of the program, or a sentence."""
    references: tuple[str, ...] = ()
    """A line a reference row: its score, and by how much the chosen point is below."""
    sees: str = ""
    """What the choice may see, and whether it peeks."""
    claim: str = ""
    """A claim that was stored before the evaluation, and its answer."""

    def _repr_html_(self) -> str:
        """Returns the lines for a notebook."""
        head = "".join(f"<th>{escape(text)}</th>" for text in (self.tasks, *self.metrics))
        rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in self.rows)
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>" if self.rows else ""
        beside = "".join(f"<p>{escape(text)}</p>" for text in self.references)
        below = "".join(f"<p>{escape(text)}</p>" for text in (self.sees, self.claim) if text)
        return f"<p><b>{escape(self.answer)}</b></p>{table}{beside}{below}<p>{escape(self.trust)}</p>"

    def _repr_markdown_(self) -> str:
        """Returns the lines as Markdown."""
        rows = [(self.tasks, *self.metrics), (":--", *("--:" for _ in self.metrics)), *self.rows]
        cells = [[escape(cell).replace("|", r"\|") for cell in row] for row in rows]
        table = "\n".join(f"| {' | '.join(row)} |" for row in cells) if self.rows else ""
        beside = map(escape, self.references)
        below = (*beside, *map(escape, (self.sees, self.claim, self.trust)))
        return "\n\n".join(filter(None, (f"**{escape(self.answer)}**", table, *below)))


def summary(results: SearchResults) -> Summary:
    """Returns the summary of a search that has finished a round."""
    trusted = trust(results)
    pair = baseline_pair(results, evaluation=True)
    metrics = tuple(dict.fromkeys((results.objective, "A_T", "F_T")))
    return Summary(
        answer=_answer(results, trusted),
        tasks=_tasks(results),
        metrics=tuple(f"{metric} {METRICS[metric].display_unit}".strip() for metric in metrics),
        rows=(*_list_measurements(results, metrics), *_difference(results, pair, metrics)),
        trust=NOTHING_CHOSEN if trusted.verdict.kind == INERT else _trust(results, pair),
        next_step=_next_step(results, trusted, pair),
        references=references.in_lines(results),
        sees=results.seen,
        claim="" if results.claim is None else claim.in_brief(results.claim),
    )


def command_in(caution: str) -> str:
    """Returns the command with which a caution ends; "" for one without."""
    match = COMMAND.search(caution)
    return match[1] if match else ""


def _answer(results: SearchResults, trusted: Assessment) -> str:
    chosen, (kind, peak) = point_text(results.parameters, results.chosen), (trusted.verdict.kind, trusted.peak)
    if kind == INERT:
        return f"no answer: all {wording.others(results)} have the same score bit for bit"
    if results.stages:
        return f"{chosen}   ({along_tasks.in_brief(results)})"
    if kind == "diverging":
        return f"{chosen}   (no confidence set: too many members diverged)"
    if peak is None:
        return f"{chosen}   ({_among(trusted)})"
    return f"{chosen}   (95 % confidence set {peak.text}{_shape(results, trusted)})"


def _among(trusted: Assessment) -> str:
    """Returns how a point that lies on no curve compares with the other ones."""
    others = sum(not math.isnan(point.spread.mean) for point in trusted.points) - 1
    if others < 1:
        return "nothing to compare it with"
    if not trusted.rivals:
        return f"significantly better than {'the other one' if others == 1 else f'all {others} others'}"
    return f"{len(trusted.rivals)} of {count_text(others, 'other')} cannot be told apart from the best"


def _shape(results: SearchResults, trusted: Assessment) -> str:
    """Returns what the verdict adds to the confidence set."""
    kind, peak = trusted.verdict.kind, trusted.peak
    assert peak is not None
    end = "lower" if peak.maximum.at_low else "upper"
    if kind == "one-sided":
        return f", level up to its {end} end"
    if kind == "level":
        return f", level: differences below {MARGIN:g} points"
    if kind == "open":
        return f": not resolved by {wording.samples(trusted.seeds, results.orders)}"
    if kind == "edge":
        if not _fixed_end(results, trusted):
            return f", at the {end} end"
        assert results.domain[0] is not None
        low, high = results.domain[0]
        beyond = f"go below {value_text(low)}" if peak.maximum.at_low else f"exceed {value_text(high)}"
        return f"; {wording.subject(results)} cannot {beyond}"
    return ""


def _fixed_end(results: SearchResults, trusted: Assessment) -> bool:
    """Returns whether the open end of the confidence set is one that no search can cross."""
    assert trusted.peak is not None
    low, high = results.at_limits(results.parameters[0])
    return low if trusted.peak.maximum.at_low else high


def _tasks(results: SearchResults) -> str:
    if not results.evaluation:
        return ""
    tasks = count_text(results.evaluation[0].tasks, "new task" if results.score_on == "cv" else "task")
    spread = "σ" if printed_methods(results) else "sd"  # of the population beside printed rows, as in print
    return f"{tasks}, {wording.units(results.evaluation)}, ± {spread}"


def _list_measurements(results: SearchResults, metrics: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Returns the evaluated points and the paper's rows, with mean ± standard deviation."""
    rows = evaluation_table(results).to_dict("records") if results.evaluation else []
    return [
        (str(row["row"]), *(METRICS[m].mean_std_text(row[f"{m}_mean"], row[f"{m}_std"]) for m in metrics))
        for row in rows
    ]


def _difference(results: SearchResults, pair: Paired, metrics: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Returns the row of the paired differences ± their standard errors; none without a pair."""
    if not pair.n:
        return []
    cells = []
    for metric in metrics:
        declared, pair_of_metric = METRICS[metric], baseline_pair(results, metric, evaluation=True)
        mean, error = declared.display_factor * pair_of_metric.mean, declared.display_factor * pair_of_metric.error
        spread = f" ± {number_text(error, declared.digits)}" if math.isfinite(error) else ""
        cells.append(f"{signed_text(mean, declared.digits)}{spread}")
    return [("difference, ± s.e.", *cells)]


def _trust(results: SearchResults, pair: Paired) -> str:
    """Returns the strongest reason for or against the answer."""
    if certificates.warning(results):
        return "a member trained again has another result than its stored one: see why"
    against, name = objection(results), wording.baseline_name(results)
    if against is not None:
        verb, more = ("rejects", "") if against == REJECTED else ("does not confirm", ", or add seeds")
        return f"the evaluation {verb} the choice: take {name}{more}"
    if not results.evaluation:
        return "the evaluation has not run yet"
    if results.score_on == "eval":
        return "chosen on the evaluation stream itself: the figures are biased upwards"
    if results.baseline is None:
        return "the choice is compared with nothing"
    if results.chosen == results.baseline:
        return f"the choice is {name} itself: nothing to test"
    if pair.n < 2:
        return "one seed gives no test of the difference"
    if not any(pair.differences):
        return f"the choice and {name} score the same bit for bit"
    p = sign_flip_p(pair.differences)
    samples = wording.samples(pair.n, results.orders)
    test = f"{results.objective} higher on {pair.wins} of {samples}; sign-flip test p = {p:.2g}"
    if smallest_sign_flip_p(pair.n) < ALPHA:
        return test
    return f"{test} (p < {ALPHA} needs {wording.samples(LEAST_FOR_A_TEST, results.orders)})"


def _next_step(results: SearchResults, trusted: Assessment, pair: Paired) -> str:
    """Returns the one next step."""
    verdict, extend = trusted.verdict, f"epsearch run --extend --name {results.name}"
    if not results.evaluation:
        return f"epsearch resume {results.name}"
    if verdict.kind in (INERT, "diverging"):
        return verdict.advice
    if not results.stages and verdict.kind == "edge" and (wider := _wider(results, trusted)):
        return f"{extend} --interval {wider}" if results.of_epsilon else wider
    more = along_tasks.further(results) or _seeds(results, trusted, pair)
    if more and objection(results) != REJECTED:
        return f"{extend} {more}"
    command = next(filter(None, map(command_in, results.notes)), "")
    return command or f"epsearch report {results.name} --figures pdf"


def _wider(results: SearchResults, trusted: Assessment) -> str:
    """Returns an interval of twice the width, beyond the end at which the best value lies; "" for an end that is fixed.

    A sentence where no option could widen the interval: only ε has --interval.
    """
    peak, ends = trusted.peak, results.domain[0]
    if peak is None or ends is None:
        return trusted.verdict.advice
    if _fixed_end(results, trusted):
        return ""
    if not results.of_epsilon:
        return trusted.verdict.advice
    low, high = ends
    if peak.maximum.worse_ends[not peak.maximum.at_low]:  # the interval has an end where its own value is worse
        return ""
    width = high - low
    low, high = (max(0.0, low - width), high) if peak.maximum.at_low else (low, min(1.0, high + width))
    return f"{low:g} {high:g}"


def _seeds(results: SearchResults, trusted: Assessment, pair: Paired) -> str:
    """Returns the option with the seeds that would decide what the study leaves open; "" where none would.

    Or where nothing is open. Where the evaluation has seeds of its own, a test needs more of those; so it does where
    predictions have chosen, as the search would have to begin anew with others.
    """
    for_the_top = 0.0 if trusted.peak is None else trusted.peak.maximum.seeds_needed
    if not math.isfinite(for_the_top) or for_the_top > MANY_SEEDS:
        for_the_top = 0.0
    open_still = LEAST_FOR_A_TEST if trusted.verdict.kind == "open" else 0
    for_a_test = LEAST_FOR_A_TEST if 0 < pair.n < LEAST_FOR_A_TEST else 0
    two_sets = results.eval_seeds != results.seeds or bool(results.stages)
    needed = 0 if results.stages else max(math.ceil(for_the_top), open_still, 0 if two_sets else for_a_test)
    options = (("seeds", results.seeds, needed), ("eval-seeds", results.eval_seeds, for_a_test * two_sets))
    for option, seeds, units in options:
        if units > len(seeds) * results.orders:
            return f"--{option} {_seeds_text(seeds, -(-units // results.orders))}"
    return ""


def _seeds_text(seeds: Sequence[int], number: int) -> str:
    """Returns a number of seeds that begin with these, as an option has them: new ones come last.

    >>> _seeds_text((0, 1, 2), 6), _seeds_text((5, 7), 4)
    ('6', '5,7,8,9')
    """
    if tuple(seeds) == tuple(range(len(seeds))):
        return str(number)
    more = range(max(seeds) + 1, max(seeds) + 1 + number - len(seeds))
    return ",".join(map(str, (*seeds, *more)))
