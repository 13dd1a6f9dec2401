"""Adapters to Ray Tune and Optuna; no other module of this package imports these libraries."""
