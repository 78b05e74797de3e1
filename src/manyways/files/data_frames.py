"""pandas, which is optional, and takes a while to import: only who reads or makes a table waits for it."""

from __future__ import annotations

from typing import Any

from manyways.errors import SettingError


def the_pandas() -> Any:
    """The module; a SettingError says how to install it if it is missing."""
    try:
        import pandas
    except ImportError:
        raise SettingError("tables and data frames need pandas: pip install 'manyways[data]'") from None
    return pandas
