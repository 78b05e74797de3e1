"""Puts this folder on the path, for `import problems`, and makes Hypothesis repeatable."""

from hypothesis import settings

settings.register_profile("manyways", deadline=None, derandomize=True, database=None, max_examples=30)
settings.load_profile("manyways")
