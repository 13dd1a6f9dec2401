"""The results of training: ledger, statistics, verdicts, figures, pages.

Import the module you need (`results.metrics`, `results.ledger.store`, `results.pages.comparison`, …); importing the
package loads nothing. ROOMS lists modules and folders from the pages down; each imports only what stands behind it.

pages                     reports of every kind of study: their sections, numbers and files
html                      one page as a file;  figures  each with its numbers, drawing and tables
verdict                   what can be said about a search, and the sentences that say it
search_tables             the tables of a search;  protocol_tables  those of a study of protocols
statistics                tests, spreads and curves of few seeds;  inert  scores that are all equal
paper                     the printed tables, and ours beside them
orders                    tables of the orders of tasks
search, table, protocols  the results of a search, of a table of methods, and of a study of protocols
claims                    a claim about an evaluation, and the members that decide it
points                    a point in words, its records and their means
objectives                what a search maximises, of a run's accuracies
export, metrics           runs for other tools;  accuracies in the paper's units
continual_evaluation      metrics of tests inside tasks
metric_variants           metrics as other papers and tools define them
archive                   rows of a ledger as one file
ledger                    records, their tables and checksums, who may write them, and databases
labels, files             names, numbers and paths as they are shown;  files written whole or not at all
"""

ROOMS = (
    *("pages", "html", "figures", "verdict", "search_tables", "protocol_tables", "statistics", "inert", "paper"),
    *(
        "orders",
        "search",
        "table",
        "protocols",
        "claims",
        "points",
        "objectives",
        "export",
        "continual_evaluation",
        "metric_variants",
        "metrics",
        "archive",
        "ledger",
    ),
    *("labels", "files"),
)
