"""Joins trainers, search_spaces and results: studies, from a command line to a report.

ROOMS lists the modules and folders from the doors down; each imports only what stands behind it.

cli, terminal, doctor, consoles   what people type and read
api                               the functions behind every door
findings                          what stands in a ledger, as reports take it
session                           one training: ledger, runner, progress; the plan of what is ahead
preparation                       from options to a study that can begin: built, checked, data and arithmetic there
runners                           where jobs are trained: threads, Ray Tune; the progress line
loop                              which members a study wants, and what came of them
study                             what a study is: its kinds, options and their parsers
ledger                            where the ledger is, and what cannot be read of it
failures                          every exception in one line; signals
machine, cache, titles            facts about this machine; the folder of what is kept; how names are printed
"""

from epsearch.titles import tell_reports

ROOMS = (
    *("__main__", "cli", "terminal", "doctor", "api", "findings", "session", "preparation", "runners", "consoles"),
    *("loop", "study", "ledger", "failures", "machine", "cache", "titles"),
)

tell_reports()
