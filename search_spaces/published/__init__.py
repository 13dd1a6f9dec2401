"""The published settings of every dataset, as data."""
