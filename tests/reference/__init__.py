"""Slow and simple references for the policies, written from the paper and randomness.md.

They share no code with the package: every step scans all slots, and all arms are in an array.
"""
