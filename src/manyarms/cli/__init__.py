"""The command line: each command connects an experiment, the engine and the screen."""
