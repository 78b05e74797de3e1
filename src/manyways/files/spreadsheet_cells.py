"""Text in CSV files that spreadsheets may open: a name such as `=cmd|...` must not become a formula.

Text that begins with a character that starts a formula, or with a single quote, gets a single quote in front of it. The
reader removes one leading single quote, so that text is read exactly as it was written.
"""

from __future__ import annotations

FIRST_OF_FORMULAS = "=+-@\t\r\n＝＋－＠"
"""Characters with which spreadsheets begin a formula, the full-width ones included. Some skip tabs and line breaks."""


def cell(text: str) -> str:
    """The text as a cell that no spreadsheet evaluates."""
    return f"'{text}" if text.startswith(("'", *FIRST_OF_FORMULAS)) else text


def text_of(cell: str) -> str:
    """The text of a cell."""
    return cell.removeprefix("'")
