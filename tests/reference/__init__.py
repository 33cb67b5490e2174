"""Slow, obvious references for the policies, written from the paper and randomness.md.

They share no code with the package: every step looks at every slot, every arm lies in an array.
"""
