"""What a written page contains."""

from __future__ import annotations

import json
import re
from pathlib import Path


def page_data(path: Path) -> dict:
    """The data of the script of a page."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text(), re.DOTALL)
    assert found is not None
    return json.loads(found[1])
