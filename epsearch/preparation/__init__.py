"""From options to a study that can begin: built and checked, its data there, its arithmetic chosen."""
