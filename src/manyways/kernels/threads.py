"""How many threads matrix products use.

Products in this package are small. Shared out over threads they are at best a little faster, and many times slower where
other programs use the same processors: the threads wait for each other.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController


@cache
def _pools() -> ThreadpoolController:
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[object]:
    """Within the block, matrix products use one thread."""
    return _pools().limit(limits=1, user_api="blas")
