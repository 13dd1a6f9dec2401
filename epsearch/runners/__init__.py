"""Who trains the jobs of a study: threads of this process, or Ray Tune. The stored results are the same."""
