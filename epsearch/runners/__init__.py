"""Runners train the jobs of a study: threads of this process, or Ray Tune."""
