"""Features of a user's own, and actions."""

import numpy as np
import pytest
from scipy import sparse

import manyways as mw
from manyways import SettingError
from manyways.behaviours import Actions, Features
from problems import KNOWN, random_mdp

WORLD = mw.room_world(9, 2)


def by_loops(mdp, matrix, x):
    """The image of x, choice by choice: shares of the largest column, and the rest."""
    columns = matrix if matrix.shape[1] == mdp.n_choices else matrix[:, mdp.choice_state]
    largest = max(column.sum() for column in columns.T)
    image = np.zeros(len(matrix) + 1)
    for choice, column in enumerate(columns.T):
        for feature, entry in enumerate(column):
            image[feature] += entry / largest * x[choice]
        image[-1] += (1 - column.sum() / largest) * x[choice]
    return image


@pytest.mark.parametrize("size", ["n_states", "n_choices"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.coo_matrix, np.ndarray.tolist])
def test_features_are_shares_of_the_largest_column(size, form):
    rng = np.random.default_rng(0)
    matrix = rng.random((3, getattr(WORLD, size))) * (rng.random((3, getattr(WORLD, size))) < 0.5)
    x = rng.dirichlet(np.ones(WORLD.n_choices))
    found = Features(form(matrix), ["a", "b", "c"]).on(WORLD).forward(x)
    np.testing.assert_allclose(found, by_loops(WORLD, matrix, x), atol=1e-15)


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200, 0.3])
def test_columns_with_equal_sums_leave_nothing_for_other(scale):
    matrix = np.random.default_rng(0).dirichlet(np.ones(4), size=WORLD.n_states).T
    x = np.random.default_rng(1).dirichlet(np.ones(WORLD.n_choices))
    found = Features(scale * matrix, "abcd").on(WORLD).forward(x)
    np.testing.assert_allclose(found, by_loops(WORLD, matrix, x)[:4])


def test_features_of_a_model_without_a_map():
    mdp = KNOWN["losses"].mdp
    found = Features([[0.0, 2.0]], ["away"]).on(mdp).forward(np.array([0.1, 0.2, 0.3, 0.4]))
    np.testing.assert_allclose(found, [0.7, 0.3])


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_features_are_saved_with_the_plans(form, tmp_path):
    behaviour = Features(form(np.random.default_rng(0).random((2, WORLD.n_states))), ["light", "noise"])
    again = mw.load(mw.plan(WORLD, k=2, behaviour=behaviour).save(tmp_path / "plans.mw"))
    assert again.behaviour == behaviour
    assert hash(again.behaviour) == hash(behaviour)
    assert mw.verify(again.mdp, again).ok


def test_features_are_equal_if_their_matrices_and_names_are():
    one = Features(np.eye(2), "ab")
    assert one == Features(sparse.csr_array(np.eye(2)), ["a", "b"])
    assert one != Features(np.eye(2), "ac")
    assert one != Features(np.array([[1.0, 0.0], [0.0, 2.0]]), "ab")
    assert one != Features(np.ones((2, 3)), "ab")
    assert one != "features"


def test_the_matrix_is_not_shared_with_the_caller():
    matrix = np.eye(2)
    behaviour = Features(matrix, "ab")
    matrix[:] = 7
    assert behaviour == Features(np.eye(2), "ab")


def test_descriptions_are_short():
    assert Features(np.eye(2), ["light", "noise"]).describe() == "how much plans have of the features light, noise"
    many = Features(np.eye(9), "abcdefghi")
    assert many.describe().endswith("a, b, c, d, e, f and 3 more")
    assert repr(many).startswith("Features(a matrix of 9 rows, ['a', 'b'")


@pytest.mark.parametrize(
    ("matrix", "names", "message"),
    [
        ([[-1.0, 1.0]], "a", "none of them negative"),
        ([[np.nan, 1.0]], "a", "finite entries"),
        ([1.0, 2.0], "ab", "two dimensions"),
        ([[1.0, 2.0], [1.0]], "ab", "must be an array or a sparse matrix"),
        ([["x", "y"]], "a", "must be an array or a sparse matrix"),
        (([1.0], [7], [0, 1], (1, 2)), "a", "must be an array or a sparse matrix"),
        (([1.0], [7]), "a", "must be an array or a sparse matrix"),
        (np.eye(2), "a", "expected 2 different names"),
        (np.eye(2), "aa", "expected 2 different names"),
    ],
)
def test_what_is_no_matrix_of_features_is_refused(matrix, names, message):
    with pytest.raises(SettingError, match=message):
        Features(matrix, names)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [(np.ones((1, 7)), "found 7 columns"), (np.zeros((1, WORLD.n_states)), "no entry above 0")],
)
def test_what_does_not_fit_the_model_is_refused(matrix, message):
    with pytest.raises(SettingError, match=message):
        Features(matrix, ["a"]).on(WORLD)


@pytest.mark.parametrize("seed", range(5))
def test_actions_add_up_time_by_name(seed):
    for mdp in (WORLD, random_mdp(np.random.default_rng(seed))):
        x = np.random.default_rng(seed).random(mdp.n_choices)
        expected = dict.fromkeys(mdp.action_names, 0.0)
        for choice in range(mdp.n_choices):
            expected[mdp.action_name(choice)] += x[choice]
        np.testing.assert_allclose(Actions().on(mdp).forward(x), list(expected.values()))
