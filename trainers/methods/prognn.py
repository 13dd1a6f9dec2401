"""PROGNN, progressive networks (Rusu et al., 2016).

A new column for every task, fed by all earlier ones, which are frozen. The network grows, so the method has engines of
its own, `engines/columns/mlp.py` for multilayer perceptrons and `engines/columns/resnet.py` for residual networks.
Their equations stand in `networks/progressive`.
"""

from trainers.methods.rules import Columns, Method

PROGNN = Method("PROGNN", "Rusu et al., 2016", Columns())
