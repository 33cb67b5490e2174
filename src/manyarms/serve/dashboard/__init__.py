"""The pages: a list of experiments, one for each, one for each arm."""
