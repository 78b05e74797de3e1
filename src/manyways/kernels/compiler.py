"""How the kernels are compiled.

Kernels allocate nothing, hold no array expressions, and are called from Python only. Without reference counts, rewrites
and wrappers they compile faster; few arguments, few loops and no repeated look-ups help as well.
"""

from __future__ import annotations

from numba import njit

_settings = {
    "cache": True, "nogil": True, "error_model": "numpy", "no_rewrites": True, "no_cfunc_wrapper": True, "_nrt": False
}  # fmt: skip
compiled = njit(**_settings)
compiled_into_callers = njit(inline="always", **_settings)
"""For what is done for every state: a call with many arrays takes as long as a state."""
