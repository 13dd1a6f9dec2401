"""What the runs measured: records, metrics, the ledger, figures and the report.

Import the module you need (`results.metrics`, `results.store`, `results.report`, …); importing the package
loads nothing.
"""
