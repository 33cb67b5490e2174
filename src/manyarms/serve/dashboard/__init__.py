"""The dashboard: a list of experiments, a page for each, and a form for new ones."""
