"""Studies: many plans over many settings, resumable, on one core, several, or a cluster.

Nothing is imported here: worker processes need `trial` only, and start sooner without pictures and pages.
"""
