"""Where states are drawn: what is not tested with the model itself."""

import numpy as np
import pytest

from manyways import Grid, ModelError


@pytest.mark.parametrize("given", [0.05, 1, np.float32(0.25)])
def test_the_size_of_cells_is_a_number_of_metres(given):
    layout = Grid(np.arange(2), np.zeros((1, 2), bool), metres_per_cell=given)
    assert layout.metres_per_cell == float(given)
    assert Grid(np.arange(2), np.zeros((1, 2), bool)).metres_per_cell is None


@pytest.mark.parametrize("given", [0, -0.1, np.nan, np.inf, True, "0.05", 10**400])
def test_other_sizes_are_refused(given):
    with pytest.raises(ModelError, match="`metres_per_cell` must be a finite number above 0"):
        Grid(np.arange(2), np.zeros((1, 2), bool), metres_per_cell=given)
