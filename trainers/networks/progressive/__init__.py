"""Networks that grow by a column a task (Rusu et al., 2016)."""
