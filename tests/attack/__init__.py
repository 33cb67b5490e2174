"""Attacks: planted, damaged and crafted files and requests. `make attack` runs them in minutes.

An attack is a function that takes a `Workspace` and yields, for each attempt, its description and
whether manyarms withstood it. It is decorated with `@attack("target: what is done to it")` in one
of the modules that `__main__` imports. A new module needs a line there.
"""
