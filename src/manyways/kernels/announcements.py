"""How two threads that work on the same arrays tell each other how far they are, and wait for each other.

A compiler may read a plain array entry once and keep it, or move writes across it. Announcements may not be moved: what a thread
wrote before it announced a number is seen by a thread that has read the number.

Two threads share the work of one compiled call, the first and the second `part` of it, or one thread does both parts. Threads
that wait look again and again, because that is a hundred times faster than to be woken. After a while they let other programs
use their core between two looks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, cast

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from manyways.kernels.compiler import compiled
from manyways.types import Ints

WIDTH = 8
"""Bytes of a number."""
FIRST, SECOND, BOTH = 0, 1, 2
"""The parts of the work of a call."""
APART = 16
"""What two threads write lies so many numbers apart, so that no line of the processor's cache holds both."""
OFF = 2 * APART
"""In the numbers of meetings: whether the other thread has been called off."""
MEETINGS = OFF + 1
"""How many numbers two threads need to meet."""
LOOKS = 3000
"""So often a thread looks before it lets others use its core."""


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

let_others_run: Callable[[], int] = cast(
    Any, types.ExternalFunction("SwitchToThread" if sys.platform == "win32" else "sched_yield", types.int32())
)
"""Offer the core to other threads and programs for a moment."""


@compiled
def meet(part, meetings):
    """Wait until both threads have come here; all that they wrote before is then seen by both. `meetings` (MEETINGS,) counts for
    each thread how often it came. Returns whether the other one came: False if it was called off."""
    if part == BOTH:
        return True
    mine = meetings[part * APART] + 1
    announce(meetings, part * APART, mine)
    other = (1 - part) * APART
    while True:
        for _ in range(LOOKS):
            if announced(meetings, other) >= mine:
                return True
        if announced(meetings, OFF) != 0:
            return False
        let_others_run()


@compiled
def share(part, count):
    """The numbers below `count` of which a thread takes care: from the first returned up to the second, without it."""
    middle = count // 2
    return 0 if part != SECOND else middle, middle if part == FIRST else count


@compiled
def call_off(meetings):
    """Tell the other thread that this one will not come."""
    announce(meetings, OFF, 1)
