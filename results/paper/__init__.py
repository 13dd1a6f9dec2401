"""The tables printed in the paper, and our results beside them."""
