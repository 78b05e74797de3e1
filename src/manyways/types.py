"""The array types that signatures name."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Sparse = Any
"""A scipy.sparse array; scipy ships no types for it."""
