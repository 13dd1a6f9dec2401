"""Checks of plug-in trainers: repeated runs, noise, and hyperparameters without effect."""
