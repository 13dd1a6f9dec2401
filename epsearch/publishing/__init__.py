"""Studies in the tools of others, Optuna, MLflow, TensorBoard: published from the ledger, or logged as they train."""
