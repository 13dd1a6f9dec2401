"""One YAML file a dataset, and grids.yaml; read by search_spaces.published.definition."""
