"""The loops that must stay loops, compiled by numba: plain functions on arrays, one module for each caller.

They are few and small on purpose: the first call on a new machine compiles them, later ones load them from the cache.
"""
