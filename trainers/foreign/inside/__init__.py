"""Runs in the process of a plug-in trainer; the only package that imports its code."""
