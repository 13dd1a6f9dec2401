"""Search protocols: which accuracies may choose a value, and when."""
