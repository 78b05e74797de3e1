"""What counts as different: groupings of choices, mixtures of them, and what is refused."""

import numpy as np
import pytest
from scipy import sparse

import manyways as mw
from manyways import MDP, Grouping, Labels, Mixing, SettingError, StateActions, States
from problems import KNOWN


@pytest.fixture
def labelled() -> MDP:
    """Four states in a ring, two actions each, two labels that make four combinations."""
    rows = [(s, a, (s + a) % 4, 1.0, 1.0) for s in range(4) for a in (1, 2)]
    return MDP.from_transitions(rows, labels={"wet": [0, 2], "dark": [2, 3]}, name="labelled")


def test_behaviours_group_choices(labelled):
    x = np.random.default_rng(1).dirichlet(np.ones(8))
    by_state = np.array([x[labelled.choice_state == s].sum() for s in range(4)])
    np.testing.assert_array_equal(StateActions().on(labelled).forward(x), x)
    np.testing.assert_allclose(States().on(labelled).forward(x), by_state)
    wet = Labels(["wet"]).on(labelled).forward(x)
    np.testing.assert_allclose(wet, [by_state[[1, 3]].sum(), by_state[[0, 2]].sum()])
    combinations = Labels().on(labelled).forward(x)  # each state has its own
    np.testing.assert_allclose(np.sort(combinations), np.sort(by_state))


def test_only_state_actions_change_nothing(labelled):
    assert StateActions().on(labelled).identity
    assert not any(kind.on(labelled).identity for kind in (States(), Labels(), Labels(["wet"])))


def test_unknown_labels_are_refused_and_the_known_ones_listed(labelled):
    with pytest.raises(SettingError, match="labelled has no label 'dry'; it has dark, wet"):
        Labels(["dry"]).on(labelled)


def test_a_model_without_labels_is_refused_in_the_language_of_the_caller():
    with pytest.raises(SettingError, match=r"has no labels to compare plans by; use States\(\)") as caught:
        Labels().on(KNOWN["single"].mdp)
    assert caught.value.on_command_line.endswith("use --behaviour states or state-actions")


def test_doors_of_a_world():
    assert set(Labels(["door"]).on(mw.four_rooms(0)).groups) == {0, 1}


@pytest.mark.parametrize("groups", [[-1, 0], [0.5, 1.0], [[0, 1]], ["a", "b"]])
def test_groups_must_be_integers_of_at_least_0(groups):
    with pytest.raises(SettingError, match="groups must be a list of integers of at least 0"):
        Grouping(np.array(groups))


def test_a_mixture_is_its_matrix():
    rng = np.random.default_rng(0)
    matrix = rng.dirichlet(np.ones(3), size=5).T
    mixing = Mixing(sparse.csr_array(matrix))
    x, y = rng.random((2, 5)), rng.random((2, 3))
    np.testing.assert_allclose(mixing.forward(x), x @ matrix.T)
    np.testing.assert_allclose(mixing.forward(x[0]), matrix @ x[0])
    np.testing.assert_allclose(mixing.backward(y), y @ matrix)
    assert mixing.groups is None


def test_a_grouping_is_a_mixture_with_one_place_for_each_choice():
    groups = np.array([0, 2, 1, 2, 0])
    matrix = (groups == np.arange(3)[:, None]).astype(float)
    x, y = np.random.default_rng(1).random((2, 5)), np.random.default_rng(2).random((2, 3))
    np.testing.assert_allclose(Grouping(groups).forward(x), Mixing(matrix).forward(x))
    np.testing.assert_allclose(Grouping(groups).backward(y), Mixing(matrix).backward(y))


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[1.0, 0.4], [0.0, 0.5]], "that of choice 1 misses it by 0.1"),
        ([[1.5, 1.0], [-0.5, 0.0]], "none of them negative"),
        ([[np.nan, 1.0], [0.0, 0.0]], "finite entries"),
    ],
)
def test_matrices_that_do_not_share_out_time_are_refused(matrix, message):
    with pytest.raises(SettingError, match=message):
        Mixing(np.array(matrix))
