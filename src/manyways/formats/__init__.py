"""Where models come from: names of worlds, maps, world files. `read` is the one door."""

from manyways.formats.reader import read

__all__ = ["read"]
