"""Tests, spreads and curves for few seeds. The seed is the unit: members of one seed share their data."""
