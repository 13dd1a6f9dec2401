"""One YAML file a dataset, and grids.yaml."""
