"""The import graph: layers are checked by import-linter in `make test`; here there are no cycles, lazy imports counted."""

from __future__ import annotations

import ast
from pathlib import Path

import grimp
import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

import manyways

SOURCE = Path(manyways.__file__).parent
ARCHITECTURE = SOURCE.parents[1] / "ARCHITECTURE.md"


def cycles(edges: set[tuple[str, str]]) -> list[list[str]]:
    """The sets of modules that import each other, directly or not."""
    names = sorted({name for edge in edges for name in edge})
    number = {name: i for i, name in enumerate(names)}
    rows, columns = ([number[edge[end]] for edge in edges] for end in (0, 1))
    graph = sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(names), len(names)))
    _, component = csgraph.connected_components(graph, directed=True, connection="strong")
    groups = [[name for name, c in zip(names, component, strict=True) if c == k] for k in range(component.max() + 1)]
    return [group for group in groups if len(group) > 1]


def imports() -> set[tuple[str, str]]:
    """(importer, imported) of all modules, also within functions and under TYPE_CHECKING; the package's own lazy names
    are left out."""
    graph = grimp.build_graph("manyways", cache_dir=None)
    return {
        (module, imported)
        for module in graph.modules
        if module != "manyways"
        for imported in graph.find_modules_directly_imported_by(module)
    }


def test_no_module_imports_itself_by_a_detour():
    assert cycles(imports()) == []


def test_a_cycle_would_be_noticed():
    assert cycles({("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")}) == [["a", "b", "c"]]
    assert cycles({("a", "b"), ("a", "c"), ("b", "c")}) == []


def test_one_module_is_found_by_name_and_no_other():
    """`PlanSet.report` finds the page by its name, because the page needs plan sets; see ARCHITECTURE.md."""
    callers = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.glob("**/*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"import_module", "__import__"}
    }
    assert callers == {"__init__.py", "plans/planset.py"}


def test_the_architecture_page_names_every_folder_and_module_of_the_package():
    text = ARCHITECTURE.read_text()
    parts = [path for path in SOURCE.iterdir() if path.is_dir() or path.suffix == ".py"]
    names = {path.name + "/" if path.is_dir() else path.name for path in parts} - {"__pycache__/", "__init__.py"}
    assert {name for name in names if name not in text} == set()
