"""Files: one bounded reader, one atomic writer, and zip archives of arrays. Everything else goes through these."""

from manyways.files.reading import open_regular, read_bytes, read_text
from manyways.files.writing import atomic, check_writable, write_bytes

__all__ = ["atomic", "check_writable", "open_regular", "read_bytes", "read_text", "write_bytes"]
