"""PROGNN, progressive networks (Rusu et al., 2016): a new column for every task, fed by all earlier ones, now frozen.

The network grows, so the method has an engine of its own, `engines/columns.py`, where its equations stand.
"""

from trainers.methods.base import Columns, Method

PROGNN = Method(Columns())
