"""Lists of studies and loaded results, for reports, the terminal and Python."""
