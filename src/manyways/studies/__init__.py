"""Studies: many plans over many settings, resumable, in one process, in several, or on a Dask cluster.

This file imports nothing: worker processes need only `trial`, and start faster without pictures and pages.
"""
