"""How `--help` groups the options of studies by subject."""

HELP_GROUPS = {
    "What is searched": (
        *("search", "set", "against", "interval", "strategy", "strategy_seed", "repeats", "points"),
        *("race", "score_on"),
    ),
    "Stream": (
        *("dataset", "data_dir", "tasks", "cv_tasks", "classes_per_task", "image_size", "examples_per_task"),
        "skip_corrupt",
    ),
    "Seeds and evaluation": ("seeds", "eval_seeds", "certify"),
    "Where and how it runs": (
        *(
            "runner",
            "workers",
            "time_budget",
            "time_limit",
            "memory_limit",
            "address",
            "task_timeout",
            "device",
            "precision",
            "numeric_path",
        ),
        "checkpoints",
    ),
    "Output": ("name", "out", "storage", "add_metrics", "add_figures"),
}
OF_METHODS = "Method and training"  # all others, hyperparameters among them
