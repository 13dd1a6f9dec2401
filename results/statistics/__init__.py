"""Tests, spreads and curves of few seeds. The seed is the unit: members of a seed share their data."""
