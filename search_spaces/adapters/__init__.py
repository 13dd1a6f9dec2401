"""Adapters to Ray Tune and Optuna; only these modules import them."""
