"""One YAML file a published row: its printed number, and the settings that are to reproduce it."""
