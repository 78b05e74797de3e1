"""The documents of the project, and the code in them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GENERATED = {DOCS / "gallery.md", DOCS / "reference" / "api.md", DOCS / "reference" / "commands.md"}
PAGES = sorted({*DOCS.glob("*.md"), *DOCS.glob("[a-z]*/*.md")} - GENERATED)
DOCUMENTS = [
    *PAGES,
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "ARCHITECTURE.md")),
    ROOT / "benchmarks" / "README.md",
]

FENCED = re.compile(r"^```(\{?[\w-]*\}?)[^\n]*\n(.*?)^```$", re.M | re.S)
CONTAINER = re.compile(r"^```\{container\}[^\n]*\n(.*?)^```$", re.M | re.S)
INDENTED = re.compile(r"(?<=\n\n)(?:    .*\n|\n(?=    ))+")
INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
TRANSCRIPTS = ("output", "{toctree}")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def code_of(text: str) -> list[tuple[str, str]]:
    """The pieces of code in a document: the language ("" for indented blocks, "inline" for words in a sentence), and the text."""
    text = CONTAINER.sub(r"\1", text)
    pieces = [(kind, body) for kind, body in FENCED.findall(text) if kind not in TRANSCRIPTS]
    text = FENCED.sub("\n", text)
    pieces += [("", block) for block in INDENTED.findall(text)]
    return pieces + [("inline", piece) for piece in INLINE.findall(INDENTED.sub("\n", text))]


def sections_of(text: str) -> list[tuple[str, str]]:
    """The heading of each section and its text, code included."""
    parts = re.split(r"^(#+ .*)$", FENCED.sub(lambda block: block[0].replace("\n#", "\n #"), text), flags=re.M)
    return list(zip(parts[1::2], parts[2::2], strict=True))
