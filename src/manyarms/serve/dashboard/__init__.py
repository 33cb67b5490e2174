"""The pages: a list of experiments, one page for each, and a form for new ones."""
