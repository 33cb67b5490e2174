"""The simulator: from policies and an instance to a result."""

from manyarms.engine.simulate import simulate

__all__ = ["simulate"]
