"""Publishes studies to Optuna, MLflow and TensorBoard, stored or while they train."""
