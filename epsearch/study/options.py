"""The options of all commands that train, one row each: name, default, what it takes, help.

A command takes the options that its description (kinds.py) has as fields. CLI, YAML and service read this table.
"""

from functools import partial

from epsearch.study import limits
from epsearch.study import names as named
from epsearch.study import parsers as of
from epsearch.study.hyperparameters import own_shown, own_values, space, space_shown
from epsearch.study.option import Option
from epsearch.study.running import RUNNING
from search_spaces.strategies import STRATEGIES
from trainers.cohort import NETWORKS
from trainers.methods import METHODS, hyperparameters

CURVE, TRIED = CHOOSING = ("curve", "tried")
PAIRS = "pairs"
"""The rule of races that ledgers name: each pair of values is compared on its own noise."""

FIRST: tuple[Option, ...] = (
    Option(
        "dataset",
        "permuted_digits",
        named.dataset,
        "Stream of tasks: a name of `epsearch datasets`; folder:PATH, class folders or a zip of them; module:factory.",
    ),
    Option(
        "method",
        "soft_agem",
        named.method,
        f"Method whose hyperparameter is searched: {', '.join(METHODS)}; or module:attribute.",
    ),
    Option(
        "trainer",
        None,
        named.trainer,
        "Your own training code in place of a method, module:attribute of a function (values, stream, seed, report).",
        later=True,
    ),
    Option(
        "objective",
        "A_T",
        named.objective,
        "What the search maximises: A_T, A_T-0.5F_T with any factor, worst-task, anytime; or module:attribute.",
        later=True,
    ),
    Option(
        "strategy",
        "narrowing",
        partial(named.plugin, kind="strategy", known=STRATEGIES),
        f"How the search chooses the values of the next round: {', '.join(STRATEGIES)}; or module:attribute.",
        later=True,
    ),
    Option(
        "choose",
        CURVE,
        partial(of.one_of, allowed=CHOOSING),
        "What is chosen: the top of a curve through all scores, trained like any value, or the best tried value.",
    ),
    Option(
        "search",
        None,
        space,
        "What is searched, like epsilon=0..1 or lr=log:0.003..0.3 memory=10,25,50. [default: ε over --interval]",
        write=space_shown,
        later=True,
        of_method=True,
    ),
    Option(
        "set",
        (),
        own_values,
        "Hyperparameters of a plug-in method, e.g. pull=0.5 when=odd. [default: the method's]",
        write=own_shown,
        later=True,
        of_method=True,
    ),
    Option(
        "against",
        (),
        own_values,
        "Values that the choice of a trainer is compared with, like lr=0.1. [default: those it declares, if any]",
        write=own_shown,
        later=True,
        of_method=True,
    ),
    Option(
        "strategy_seed",
        0,
        partial(of.whole, low=0, high=limits.STRATEGY_SEED),
        "Seed of strategies that draw at random.",
        later=True,
    ),
    Option(
        "race",
        False,
        of.yes_or_no,
        "Train every value with two seeds, and with more only if it is not significantly worse than the best.",
        later=True,
    ),
    Option(
        "most_seeds",
        None,
        partial(of.whole, low=3, high=limits.SEEDS),
        "In a race, seeds that a value may get while several cannot be told apart. [default: those of --seeds]",
        later=True,
    ),
    Option(
        "methods",
        None,
        named.methods,
        "Methods with commas between, or all. [default: all that have published settings on the dataset]",
        write=list,
    ),
    Option(
        "sizes",
        None,
        of.sizes,
        "Memory sizes to compare, examples per class and task. [default: the dataset's, like 25,50,100]",
        write=list,
    ),
    Option(
        "repeats", None, partial(of.whole, low=1, high=limits.ROUNDS), "Rounds of the search. [default: the dataset's]"
    ),
    Option(
        "points",
        None,
        partial(of.whole, low=1, high=limits.VALUES),
        "Values tried in each round. [default: the dataset's]",
    ),
    Option("seeds", None, of.seeds, "A count, a list 0,1,2 or a range 0..4. [default: the dataset's]", write=list),
    Option(
        "eval_seeds",
        None,
        of.seeds,
        "Seeds of the evaluation, as --seeds. [default: those of the search]",
        write=list,
        later=True,
    ),
    Option(
        "cv_tasks",
        None,
        partial(of.whole, low=1, high=limits.TASKS),
        "Tasks of the search, the first of the stream. [default: the dataset's]",
    ),
    Option(
        "tasks",
        None,
        partial(of.whole, low=2, high=limits.TASKS),
        "Tasks of the whole stream; the rest is for evaluation. [default: the dataset's]",
    ),
    Option(
        "classes_per_task",
        None,
        partial(of.whole, low=1, high=limits.CLASSES),
        "Classes of each task of a stream of images. [default: the dataset's; 5 for folder:PATH]",
    ),
    Option(
        "image_size",
        None,
        partial(of.whole, low=1, high=limits.SIDE),
        "Side in pixels to which images are resized. [default: the dataset's; 32 for folder:PATH]",
    ),
    Option(
        "network",
        None,
        partial(named.plugin, kind="network", known=NETWORKS),
        "mlp for pixels; reduced_resnet18 or resnet18 for images; or module:attribute. [default: the dataset's]",
    ),
    Option(
        "pretrained",
        None,
        of.pretrained,
        "Weights that resnet18 starts from: imagenet, a file's path, or none. [default: the dataset's]",
        none="none",
    ),
    Option(
        "skip_corrupt",
        False,
        of.yes_or_no,
        "Leave out images that cannot be decoded, instead of refusing to start.",
    ),
    Option(
        "allow_shared",
        False,
        of.yes_or_no,
        "Search although more than 1 % of the test images are in training, too, or of the evaluation in the search.",
        identifies=False,
    ),
    Option(
        "examples_per_task",
        None,
        partial(of.whole_or_all, low=1),
        "Training examples of each task, or all. [default: all]",
        none="all",
    ),
)

# Below the hyperparameters. The order is that of `--help`, of study.yaml and of what a ledger keeps.
OTHERS: tuple[Option, ...] = (
    Option(
        "settings",
        (),
        named.settings,
        "Learning rates and λ of methods, like ewc.lr=0.01,ewc.strength=100. [default: the dataset's]",
        write=named.settings_shown,
    ),
    Option(
        "tune",
        False,
        of.yes_or_no,
        "First choose each method's learning rate, and λ, from A-GEM's grids on the cross-validation tasks.",
    ),
    Option("interval", None, of.interval, "Interval in which ε is searched, LOW HIGH. [default: 0 1]", write=list),
    Option(
        "score_on",
        "cv",
        partial(of.one_of, allowed=("cv", "eval")),
        "Stream that scores ε: cv is the protocol; eval reproduces the printed figures, but is biased upwards.",
    ),
)


def options() -> dict[str, Option]:
    """All options by name, in the order of `--help`: with one for every hyperparameter of any method."""
    own = (
        Option(
            one.name,
            None if one.published else one.default,
            partial(of.hyperparameter, one=one),
            one.help,
            none="all" if one.all_for_none else None,
            aliases=one.aliases,
            later=True,  # but for those that `Study.named` has
        )
        for one in hyperparameters().values()
    )
    return {option.name: option for option in (*FIRST, *own, *OTHERS, *RUNNING)}
