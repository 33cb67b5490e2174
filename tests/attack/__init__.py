"""Attacks: what others could plant, damage or craft. `make attack` tries them all, in minutes.

An attack is a function that takes an `Arena` and yields, for each thing it tried, what it was and
whether we withstood it. It is decorated with `@attack("target: what is done to it")` in one of
the modules that `__main__` imports. A new module needs a line there.
"""
