"""Promises of strategies: `strategy_checks`."""

from collections.abc import Callable, Sequence
from typing import Any

from epsearch.testing.promises import Check, checks_of, refuses, sure
from epsearch.testing.searches import StrategyCase, is_allowed, observe, run, scores_of, state, tables
from search_spaces.space import Parameter, Space
from search_spaces.strategies import STRATEGIES, StrategyKind
from search_spaces.strategy import Budget, Confidence, Observation, Suggestion, replay

Shuffle = Callable[[list[Any]], Sequence[Any]]
LINE = Space((Parameter("lr", 0.0003, 0.3, log=True),))


def strategy_checks(
    strategy: StrategyKind | str,
    *spaces: Space,
    points: int = 5,
    repeats: int = 3,
    confidence: Confidence | None = None,
) -> list[Check]:
    """Returns checks of a strategy, a StrategyKind or a name, on each of these spaces.

    spaces: by default one learning rate on a logarithmic axis; points, repeats: of its budget; confidence: for
    strategies that need it.
    """
    kind = STRATEGIES[strategy] if isinstance(strategy, str) else strategy
    every: list[Check] = []
    for space in spaces or (LINE,):
        case = StrategyCase(kind, space, Budget(points, repeats, confidence=confidence))
        checks = [*checks_of(PROMISES, case), *checks_of(map(_for_all_tables, OF_SCORES), case)]
        every += [(f"{name}[{space}]" if len(spaces) > 1 else name, check) for name, check in checks]
    return every


def asking_again_changes_nothing(case: StrategyCase) -> None:
    """A resumed process asks again."""
    strategy = case.build()
    first = strategy.ask()
    sure(first and not strategy.done, "a new search must ask for something")
    sure(strategy.ask() == first, "ask() must return the same until something is told")


def what_is_told_is_no_longer_asked(case: StrategyCase) -> None:
    """Other suggestions remain open."""
    strategy = case.build()
    first, *rest = strategy.ask()
    strategy.tell([Observation(first.number, 0.5)])
    if rest:
        sure(strategy.ask() == rest, "what was told must not be asked for again, all else must")


def telling_nothing_changes_nothing(case: StrategyCase) -> None:
    """A driver may have nothing new."""
    strategy = case.build()
    before = state(strategy)
    strategy.tell([])
    sure(state(strategy) == before, "tell([]) must change nothing")


def an_unknown_number_is_refused_and_nothing_taken_in(case: StrategyCase) -> None:
    """This includes earlier observations of the same call."""
    strategy = case.build()
    suggestions = strategy.ask()
    observations = [Observation(suggestions[0].number, 1.0), Observation(999, 1.0)]
    refuses(lambda: strategy.tell(observations), "a number that was never suggested")
    sure(strategy.ask() == suggestions and strategy.best is None, "of a call that is refused nothing may be taken in")


def a_value_may_be_told_again_but_not_changed(case: StrategyCase) -> None:
    """Scores are measurements."""
    strategy = case.build()
    suggestions = strategy.ask()
    values = [1.0, None][: len(suggestions)]
    observations = [
        Observation(suggestion.number, value) for suggestion, value in zip(suggestions, values, strict=False)
    ]
    if len(observations) == len(suggestions):  # the round would be over
        return
    strategy.tell(observations)
    strategy.tell(observations)
    new = Observation(suggestions[len(observations)].number, 1.0)
    for changed in (Observation(observation.number, 2.0) for observation in observations):
        refuses(lambda other=changed: strategy.tell([new, other]), "another value of a number")  # type: ignore[misc]
    sure(strategy.ask() == suggestions[len(observations) :], "of a call that is refused nothing may be taken in")


def values_of_closed_rounds_may_be_told_again(case: StrategyCase) -> None:
    """A restarted driver tells them again."""
    strategy = case.build()
    observations = run(strategy, lambda suggestion: suggestion.number % 3)
    before = state(strategy)
    strategy.tell(observations)
    sure(strategy.done and state(strategy) == before, "values of closed rounds may be told again, and change nothing")


def replay_refuses_what_does_not_belong_to_the_search(case: StrategyCase) -> None:
    """Then the search was another one."""
    observations = run(case.build(), lambda suggestion: suggestion.number % 3)
    refuses(
        lambda: replay(case.build(), [*observations, Observation(len(observations), 0.0)]), "an observation too many"
    )


def a_search_in_which_everything_fails_ends_without_a_best(case: StrategyCase) -> None:
    """Every member may diverge."""
    strategy = case.build()
    run(strategy, lambda suggestion: None)
    sure(strategy.best is None, f"where everything fails nothing is the best, got {strategy.best}")


def equal_scores_end_too_and_the_first_is_best(case: StrategyCase) -> None:
    """The first of equal values is the best."""
    strategy = case.build()
    run(strategy, lambda suggestion: 0.25)
    best = strategy.best
    sure(best is not None and best.value == 0.25, f"the best of equal scores must have that score, got {best}")
    first = strategy.rounds[0].points[0]
    sure(best is not None and best.point == first, f"of equal scores the first must be the best, {first}; got {best}")


def one_success_among_failures_is_the_best(case: StrategyCase) -> None:
    """However low it is."""
    for survivor in (0, 2):
        strategy = case.build()
        observations = run(strategy, lambda suggestion, only=survivor: -5.0 if suggestion.number == only else None)  # type: ignore[misc]
        if survivor < len(observations):
            best = strategy.best
            right = best is not None and (best.number, best.value) == (survivor, -5.0)
            sure(right, f"the only success, number {survivor}, must be the best, got {best}")


def suggestions_lie_inside_have_numbers_of_their_own_and_end(case: StrategyCase, table: Sequence[float | None]) -> None:
    """Suggestions lie within the space and the budget, whatever the scores are."""
    strategy, suggestions, score = case.build(), list[Suggestion](), scores_of(table)

    def record(suggestion: Suggestion) -> float | None:
        suggestions.append(suggestion)
        return score(suggestion)

    run(strategy, record)
    parameters, most = case.space.parameters, case.budget.points * case.budget.repeats
    for suggestion in suggestions:
        sure(
            len(suggestion.point) == len(parameters),
            f"a point must have {len(parameters)} values, got {suggestion.point}",
        )
        for parameter, value in zip(parameters, suggestion.point, strict=True):
            sure(is_allowed(parameter, value), f"values must lie in {parameter}, got {value!r}")
    numbers = [suggestion.number for suggestion in suggestions]
    sure(numbers == list(range(len(suggestions))), f"suggestions must be numbered 0, 1, 2, …, got {numbers}")
    sure(len(suggestions) <= most, f"there may be {most} suggestions, got {len(suggestions)}")
    count = len(strategy.rounds)
    sure(count <= case.budget.repeats, f"there may be {case.budget.repeats} rounds, got {count}")
    sure(strategy.ask() == [], "a search that is done must ask for nothing")


def rounds_show_suggestions_and_observations(case: StrategyCase, table: Sequence[float | None]) -> None:
    """This includes the open round."""
    strategy, score = case.build(), scores_of(table)
    batches: list[list[Suggestion]] = []
    observations: list[list[Observation]] = []
    while not strategy.done:
        last, batch = strategy.rounds[-1], strategy.ask()
        below = last.span is None or last.span[0] <= float(min(last.points)[0])
        sure(below, f"the span of a round must hold its points, {last.points}; got {last.span}")
        sure(
            last.points == tuple(suggestion.point for suggestion in batch) and set(last.scores) == {None},
            "the last round must be the open one, with the points that are asked for and no scores",
        )
        observations.append([observe(suggestion, score(suggestion)) for suggestion in batch])
        batches.append(batch)
        strategy.tell(observations[-1])
    rounds = strategy.rounds
    sure([round.number for round in rounds] == list(range(1, len(batches) + 1)), "rounds must be numbered 1, 2, 3, …")
    points = [tuple(suggestion.point for suggestion in batch) for batch in batches]
    sure([round.points for round in rounds] == points, "rounds must show the points that were asked for")
    values = [tuple(observation.value for observation in batch) for batch in observations]
    sure([round.scores for round in rounds] == values, "rounds must show the scores that were told")


def the_best_is_an_observed_value(case: StrategyCase, table: Sequence[float | None]) -> None:
    """It has the highest score, unless the strategy decides alone."""
    strategy, suggestions, score = case.build(), dict[int, Suggestion](), scores_of(table)

    def record(suggestion: Suggestion) -> float | None:
        suggestions[suggestion.number] = suggestion
        return score(suggestion)

    observations = run(strategy, record)
    values, best = [observation.value for observation in observations if observation.value is not None], strategy.best
    sure((best is None) == (not values), f"there must be a best exactly where something was scored, got {best}")
    if best is not None:
        right = best.point == suggestions[best.number].point and best.value == observations[best.number].value
        sure(right, f"the best must be a point that was asked for with its score, got {best}")
        highest = best.value == max(values) or case.kind.decides_alone
        sure(highest, f"the best must have the highest score, {max(values)}, got {best.value}")


def parts_in_any_order_lead_to_the_same_suggestions(
    case: StrategyCase, table: Sequence[float | None], shuffled: Shuffle
) -> None:
    """Workers end in any order."""
    whole, parts = case.build(), case.build()
    while not whole.done:
        observations = [observe(suggestion, scores_of(table)(suggestion)) for suggestion in whole.ask()]
        whole.tell(observations)
        for observation in shuffled(observations):
            parts.tell([observation])
        sure(state(parts) == state(whole), "one score after another, in any order, must lead to where all at once do")


def replay_of_any_part_in_any_order_gives_the_same_state(
    case: StrategyCase, table: Sequence[float | None], shuffled: Shuffle, count: int | None = None
) -> None:
    """A search is resumed from its scores alone; count: of the first scores, None for half."""
    history = run(case.build(), scores_of(table))
    part = history[: len(history) // 2 if count is None else count]
    lived, replayed = case.build(), case.build()
    for observation in part:
        lived.tell([observation])
    replay(replayed, shuffled(part))
    sure(
        state(replayed) == state(lived), f"a search that is replayed from {len(part)} scores must stand where it stood"
    )


PROMISES = (
    asking_again_changes_nothing,
    what_is_told_is_no_longer_asked,
    telling_nothing_changes_nothing,
    an_unknown_number_is_refused_and_nothing_taken_in,
    a_value_may_be_told_again_but_not_changed,
    values_of_closed_rounds_may_be_told_again,
    replay_refuses_what_does_not_belong_to_the_search,
    a_search_in_which_everything_fails_ends_without_a_best,
    equal_scores_end_too_and_the_first_is_best,
    one_success_among_failures_is_the_best,
)
OF_SCORES: tuple[Callable[..., None], ...] = (
    suggestions_lie_inside_have_numbers_of_their_own_and_end,
    rounds_show_suggestions_and_observations,
    the_best_is_an_observed_value,
    parts_in_any_order_lead_to_the_same_suggestions,
    replay_of_any_part_in_any_order_gives_the_same_state,
)
IN_ANY_ORDER = OF_SCORES[-2:]


def _for_all_tables(promise: Callable[..., None]) -> Callable[[StrategyCase], None]:
    """Returns the promise for several fixed lists of scores."""

    def check(case: StrategyCase) -> None:
        for table, draw in tables():
            more = (lambda items, draw=draw: draw.sample(items, len(items)),) if promise in IN_ANY_ORDER else ()
            promise(case, table, *more)

    check.__name__, check.__doc__ = promise.__name__, promise.__doc__
    return check
