"""The command line, the loop of a study and its runners: joins trainers, search_spaces and results."""
