"""Loads plug-ins: methods, networks, streams, strategies, protocols, objectives, metrics, figures, trainers.

A name is `module:attribute`, or that of an entry point of an installed package; it stands for the former everywhere.
"""
