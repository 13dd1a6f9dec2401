"""The strategy of a study, and what it is told: races over seeds, and the value that a curve names."""
