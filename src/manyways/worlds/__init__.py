"""Grid worlds: the paper's room worlds, and worlds from arbitrary maps."""

from manyways.worlds.grid import grid_world
from manyways.worlds.rooms import four_rooms, nine_rooms, room_world, tiled_rooms

__all__ = ["four_rooms", "grid_world", "nine_rooms", "room_world", "tiled_rooms"]
