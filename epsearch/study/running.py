"""The last rows of the table of options: by what, where and for how long a study is trained, where it is kept."""

from functools import partial
from pathlib import Path

from epsearch.cache import cache_folder
from epsearch.ledger.location import storage
from epsearch.study import limits
from epsearch.study import names as named
from epsearch.study import parsers as of
from epsearch.study.option import Option
from trainers.numeric_path import PRECISIONS

RUNNING: tuple[Option, ...] = (
    Option("device", "auto", partial(of.one_of, allowed=("auto", "cpu", "cuda")), "Where members are trained."),
    Option(
        "precision", "float32", partial(of.one_of, allowed=PRECISIONS), "Matrix products of a GPU: float32 or tf32."
    ),
    Option(
        "numeric_path",
        None,
        of.numeric_path,
        "Arithmetic, like cpu-float32-mkl. [default: the fastest in a measurement here; a study keeps its first one]",
        identifies=False,
    ),
    Option(
        "certify",
        2,
        partial(of.whole, low=0, high=limits.MEMBERS),
        "Members of the search that are trained again, alone, to check that cohorts change nothing.",
        identifies=False,
    ),
    Option(
        "moved_starts",
        0,
        partial(of.whole, low=0, high=limits.MEMBERS),
        "Members of the search that are trained again from a start moved by 1e-7, to measure rounding noise. "
        "[default: 2 with a residual network, else 0]",
        identifies=False,
    ),
    Option(
        "runner",
        "auto",
        partial(of.one_of, allowed=("auto", "tune", "local")),
        "tune is Ray Tune, on one machine or a cluster; local is threads of this process; auto begins with threads, "
        "and Ray Tune takes over where its start pays, in long studies. The results are the same.",
        identifies=False,
    ),
    Option(
        "workers",
        None,
        partial(of.whole, low=1, high=limits.WORKERS),
        "Cohorts trained at a time. [default: every core]",
        identifies=False,
    ),
    Option(
        "time_budget",
        None,
        of.duration,
        "Time after which no other cohort begins, like 90s, 30m or 2h; the same command goes on. [default: none]",
        identifies=False,
        write=of.duration_shown,
    ),
    Option(
        "time_limit",
        43_200.0,
        of.duration,
        "Time that a member of a trainer may take.",
        identifies=False,
        write=of.duration_shown,
    ),
    Option(
        "memory_limit",
        None,
        of.size,
        "Memory that a member of a trainer may take, like 4GiB. [default: its share of what is free]",
        identifies=False,
        write=of.size_shown,
    ),
    Option(
        "address",
        "local",
        of.address,
        "Ray cluster to join, HOST:PORT or auto; local starts a private Ray.",
        identifies=False,
    ),
    Option(
        "niceness",
        0,
        partial(of.whole, low=0, high=limits.NICENESS),
        "Scheduling priority of training (nice value): 0 normal … 19 lowest.",
        identifies=False,
    ),
    Option(
        "task_timeout",
        None,
        partial(of.whole, low=1, high=limits.SECONDS),
        "Seconds without news from a worker of Ray after which its cohort begins anew. [default: 20 times the longest "
        "pause so far, at least 600]",
        identifies=False,
    ),
    Option(
        "name",
        None,
        of.study_name,
        "Name of the study. [default: the dataset and a hash of the options]",
        identifies=False,
    ),
    Option(
        "out", Path("runs"), of.path, "Folder for the ledger and the reports.", identifies=False, write=of.path_shown
    ),
    Option(
        "storage",
        None,
        storage,
        "SQLAlchemy URL of the ledger. [default: $EPSEARCH_STORAGE, or SQLite in --out]",
        identifies=False,
        write=str,
    ),
    Option(
        "data_dir",
        cache_folder(),
        of.path,
        "Folder of datasets; what is missing is downloaded there; $EPSEARCH_CACHE moves its default.",
        identifies=False,
        write=of.path_shown,
    ),
    Option(
        "add_metrics",
        (),
        partial(named.plugins, kind="metric"),
        "Metrics of others that tables show behind ours: module:attribute, with commas between. [default: none]",
        identifies=False,
        write=list,
    ),
    Option(
        "add_figures",
        (),
        partial(named.plugins, kind="figure"),
        "Figures of others that the report shows: module:attribute, with commas between. [default: none]",
        identifies=False,
        write=list,
    ),
    Option(
        "checkpoints",
        None,
        of.place,
        "Folder or URL, like s3://BUCKET/PATH, that keeps runs which are killed. [default: the cache folder]",
        identifies=False,
    ),
)
