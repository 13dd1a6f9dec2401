"""The tables printed in the paper, beside our results."""
