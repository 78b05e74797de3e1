"""How two threads that work on the same arrays tell each other how far they are.

A compiler may read a plain array entry once and keep it, or move writes across it. These two may not be moved: what a thread wrote
before it announced a number is seen by a thread that has read the number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from manyways.types import Ints

WIDTH = 8
"""Bytes of a number."""


def _address(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    return cgutils.get_item_pointer(context, builder, kind, context.make_array(kind)(context, builder, array), [index])


def _announce(_typing: Any, numbers: Any, _index: Any, _number: Any) -> Any:
    def written(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, where, value = arguments
        address = _address(context, builder, signature.args[0], array, where)
        builder.store_atomic(value, address, "release", WIDTH)
        return context.get_dummy_value()

    return types.void(numbers, types.intp, types.int64), written


def _announced(_typing: Any, numbers: Any, _index: Any) -> Any:
    def read(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, where = arguments
        address = _address(context, builder, signature.args[0], array, where)
        return builder.load_atomic(address, "acquire", WIDTH)

    return types.int64(numbers, types.intp), read


announce: Callable[[Ints, int, int], None] = cast(Any, intrinsic(_announce))
"""Write a number to an entry of an array of int64: announce(numbers, index, number)."""
announced: Callable[[Ints, int], int] = cast(Any, intrinsic(_announced))
"""An entry of an array of int64, as last announced: announced(numbers, index)."""
