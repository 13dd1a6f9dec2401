"""Terminal output; the only package that imports rich.

consoles  consoles and tables;  listener  progress of a training;  outcome  results of a study;  stored  results of
commands on stored studies;  checked  results of a check;  lists  studies, datasets, plug-ins, checks of this machine.
"""
