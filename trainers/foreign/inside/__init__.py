"""What runs in the process of a user's own trainer: the only place that imports its code."""
