"""PROGNN, progressive networks (Rusu et al., 2016).

A new column for every task, fed by all earlier ones, which are frozen. The network grows, so the method has engines of
its own, `engines/columns/mlp.py` for multilayer perceptrons and `engines/columns/resnet.py` for residual networks.
Their equations stand in `networks/progressive`. A column answers for its own task alone, and the task of an example is
unknown in a class-incremental stream.
"""

from trainers.methods.rules import Columns, Method
from trainers.scenarios import DOMAIN, TASK

PROGNN = Method("PROGNN", "Rusu et al., 2016", Columns(), scenarios=(TASK, DOMAIN))
