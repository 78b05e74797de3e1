"""The model: three ways to make one, what it promises, and every way to get it wrong."""

import numpy as np
import pytest
from scipy import sparse

import manyways as mw
from manyways import MDP, Grid, ModelError
from problems import KNOWN, gamblers_ruin

NAN, INF = float("nan"), float("inf")

# Two states: home offers `stay` (half the time pushed away) and `leave`, away only `back`.
ROWS = np.array([[0.5, 0.5], [0.0, 1.0], [1.0, 0.0]])
REWARD = np.array([1.0, 2.0, -4.0])
FIRST = [0, 2, 3]


def small(**changes) -> MDP:
    given = {
        "transitions": ROWS,
        "reward": REWARD,
        "first_choice": FIRST,
        "action_names": ["stay", "leave", "back"],
        "actions": [0, 1, 2],
        "state_names": ["home", "away"],
        "name": "small",
    } | changes
    return MDP.from_csr(given.pop("transitions"), given.pop("reward"), given.pop("first_choice"), **given)


def by_transitions() -> MDP:
    return MDP.from_transitions(
        [
            ("home", "stay", "home", 0.5, 0.0),
            ("home", "stay", "away", 0.5, 2.0),
            ("home", "leave", "away", 1.0, 2.0),
            ("away", "back", "home", 1.0, -4.0),
        ]
    )


def by_dense() -> MDP:
    transitions = np.full((2, 3, 2), NAN)  # whatever stands in actions that are not on offer
    transitions[0, 0], transitions[0, 1], transitions[1, 2] = ROWS
    reward = np.zeros((2, 3, 2))
    reward[0, 0, 1], reward[0, 1], reward[1, 2] = 2.0, 2.0, -4.0
    return MDP.from_dense(transitions, reward, mask=[[True, True, False], [False, False, True]])


# ---- constructors -----------------------------------------------------------------------------


def test_three_routes_to_one_model_have_one_digest():
    assert small().digest == by_transitions().digest == by_dense().digest


def test_any_sparse_form_will_do():
    for form in (sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.csr_matrix):
        assert small(transitions=form(ROWS)).digest == small().digest


def test_the_layout_is_one_row_per_choice():
    mdp = small()
    assert (mdp.n_states, mdp.n_choices) == (2, 3)
    np.testing.assert_array_equal(mdp.choice_state, [0, 0, 1])
    np.testing.assert_array_equal(mdp.transitions.toarray(), ROWS)
    np.testing.assert_array_equal(mdp.start, [1, 0])
    assert [mdp.action_name(x) for x in range(3)] == ["stay", "leave", "back"]
    assert [mdp.state_name(s) for s in range(2)] == ["home", "away"]


def test_names_are_made_up_where_none_are_given():
    mdp = MDP.from_csr(ROWS, REWARD, FIRST)
    assert mdp.state_name(1) == "s1"
    assert [mdp.action_name(x) for x in range(3)] == ["a0", "a1", "a0"]
    on_grid = MDP.from_csr(ROWS, REWARD, FIRST, layout=Grid(np.array([1, 5]), np.zeros((2, 3), bool)))
    assert [on_grid.state_name(s) for s in range(2)] == ["r0c1", "r1c2"]


def test_a_reward_per_transition_is_folded_into_its_expectation():
    per_transition = sparse.csr_array(np.array([[0.0, 2.0], [7.0, 2.0], [-4.0, 7.0]]))
    np.testing.assert_allclose(small(reward=per_transition).reward, [1.0, 2.0, -4.0])
    np.testing.assert_allclose(by_transitions().reward, [1.0, 2.0, -4.0])
    np.testing.assert_allclose(by_dense().reward, [1.0, 2.0, -4.0])


def test_dense_rewards_may_be_per_state_or_per_action():
    transitions = np.stack([np.eye(2), np.eye(2)[::-1]], axis=1)
    np.testing.assert_array_equal(MDP.from_dense(transitions, [1, 2]).reward, [1, 1, 2, 2])
    np.testing.assert_array_equal(MDP.from_dense(transitions, [[1, 2], [3, 4]]).reward, [1, 2, 3, 4])


@pytest.mark.parametrize("junk", [NAN, INF, -INF])
def test_rewards_of_impossible_transitions_do_not_count(junk):
    transitions = np.stack([np.eye(2), np.eye(2)[::-1]], axis=1)
    reward = np.where(transitions > 0, 3.0, junk)
    np.testing.assert_array_equal(MDP.from_dense(transitions, reward).reward, np.full(4, 3.0))
    listed = [("a", "x", "a", 1.0, 3.0), ("a", "x", "b", 0.0, junk), ("b", "x", "b", 1.0, 3.0)]
    np.testing.assert_array_equal(MDP.from_transitions(listed).reward, [3.0, 3.0])


def test_repeated_transitions_add_up():
    mdp = MDP.from_transitions(
        [(0, "x", 0, 0.25, 4.0), (0, "x", 1, 0.5, 0.0), (0, "x", 0, 0.25, 8.0), (1, "x", 0, 1, 0)]
    )
    np.testing.assert_array_equal(mdp.transitions.toarray(), [[0.5, 0.5], [1, 0]])
    np.testing.assert_array_equal(mdp.reward, [3.0, 0.0])


def test_states_may_be_anything_hashable_and_are_numbered_as_they_appear():
    mdp = MDP.from_transitions(
        [((0, 1), "x", "b", 1.0, 0.0), ("b", "x", (0, 1), 1.0, 0.0)], start={"b": 0.5, (0, 1): 0.5}
    )
    assert mdp.state_names == ("(0, 1)", "b")
    np.testing.assert_array_equal(mdp.start, [0.5, 0.5])


def test_labels_may_name_their_states():
    mdp = MDP.from_transitions([("a", "x", "b", 1.0, 0.0), ("b", "x", "a", 1.0, 0.0)], labels={"end": ["b"]})
    np.testing.assert_array_equal(mdp.labels["end"], [False, True])


def test_rows_rounded_to_six_digits_are_scaled_to_one():
    third = np.round(1 / 3, 7)
    mdp = MDP.from_csr(np.full((3, 3), third), np.zeros(3), [0, 1, 2, 3])
    np.testing.assert_allclose(mdp.transitions.sum(axis=1), 1.0, atol=1e-15)


def test_stored_zeros_and_split_entries_do_not_change_the_model():
    split = sparse.csr_array(([0.25, 0.5, 0.25, 0.0, 1.0, 1.0], [0, 1, 0, 0, 1, 0], [0, 3, 5, 6]), shape=(3, 2))
    assert small(transitions=split).digest == small().digest


# ---- promises ---------------------------------------------------------------------------------


def test_arrays_are_read_only():
    mdp = small(labels={"x": [True, False]}, layout=Grid(np.arange(2), np.zeros((1, 2), bool)))
    sealed = [mdp.reward, mdp.first_choice, mdp.start, mdp.actions, mdp.choice_state, mdp.labels["x"]]
    sealed += [mdp.transitions.data, mdp.transitions.indices, mdp.transitions.indptr]
    sealed += [mdp.layout.cells, mdp.layout.blocked]
    for array in sealed:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[0]


def test_later_changes_of_the_callers_arrays_do_not_reach_the_model():
    rows, reward = ROWS.copy(), REWARD.copy()
    mdp = small(transitions=rows, reward=reward)
    rows[:], reward[:] = 0, 0
    np.testing.assert_array_equal(mdp.reward, REWARD)
    np.testing.assert_array_equal(mdp.transitions.toarray(), ROWS)


def test_the_digest_does_not_see_names_or_drawings():
    plain = MDP.from_csr(ROWS, REWARD, FIRST)
    grid = Grid(np.array([1, 0]), np.zeros((1, 2), bool), blocked_means="water")
    dressed = small(layout=grid, name="other", ends={"goal": [0.5, 0.0, 0.0]})
    assert plain.digest == dressed.digest


@pytest.mark.parametrize(
    "change",
    [
        {"reward": [1.0, 2.0, -4.5]},
        {"transitions": [[0.5, 0.5], [0.0, 1.0], [0.5, 0.5]]},
        {"start": [0.0, 1.0]},
        {"first_choice": [0, 1, 3]},
        {"labels": {"x": [True, False]}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_the_digest_sees_every_number(change):
    assert small(**change).digest != small().digest


def test_the_digest_does_not_tell_zero_from_minus_zero():
    assert small(reward=[0.0, 2.0, -4.0]).digest == small(reward=[-0.0, 2.0, -4.0]).digest


def test_repr_tells_name_sizes_and_digest():
    mdp = small()
    assert repr(mdp) == f"MDP('small', 2 states, 3 choices, 4 transitions, {mdp.digest[:8]})"


def test_a_grid_places_states_and_makes_pictures():
    grid = Grid(np.array([5, 0]), np.array([[False, True, False], [False, False, False]]))
    assert grid.shape == (2, 3)
    assert grid.position(0) == (1, 2)
    np.testing.assert_array_equal(grid.image(np.array([0.25, 0.75])), [[0.75, 0, 0], [0, 0, 0.25]])


# ---- derived models ---------------------------------------------------------------------------


def three_rooms() -> MDP:
    return MDP.from_transitions(
        [
            ("a", "on", "b", 1.0, 1.0),
            ("b", "on", "a", 1.0, 2.0),
            ("attic", "down", "a", 1.0, 3.0),
            ("attic", "stay", "attic", 1.0, 4.0),
        ],
        labels={"top": ["attic"]},
        ends={"asleep": [0.0, 0.5, 0.25, 0.0]},
        observations=[7, 8, 9],
        name="three rooms",
    )


def test_restricting_keeps_the_marked_states_and_what_belongs_to_them():
    kept = three_rooms().restricted_to([True, True, False])
    assert kept.state_names == ("a", "b")
    np.testing.assert_array_equal(kept.transitions.toarray(), [[0, 1], [1, 0]])
    np.testing.assert_array_equal(kept.reward, [1, 2])
    np.testing.assert_array_equal(kept.labels["top"], [False, False])
    np.testing.assert_array_equal(kept.ends["asleep"], [0.0, 0.5])
    np.testing.assert_array_equal(kept.observations, [7, 8])
    assert mw.reachable_from_start(three_rooms()).tolist() == [True, True, False]


def test_restricting_keeps_the_drawing():
    grid = mw.grid_world(np.zeros((2, 2), bool), (0, 0), (1, 1))
    assert grid.restricted_to(np.ones(4, bool)).digest == grid.digest
    assert grid.restricted_to(np.ones(4, bool)).layout.cells.tolist() == [0, 1, 2, 3]


def test_restarting_leads_every_choice_of_the_ends_back_to_the_start():
    ruin = gamblers_ruin(capital=1, target=2).mdp
    ends = [s for s in range(3) if ruin.state_name(s) in ("0", "2")]
    mask = np.isin(np.arange(3), ends)
    again = ruin.restarting_at(ends)
    assert again.digest == ruin.restarting_at(mask).digest
    rows = again.transitions.toarray()
    np.testing.assert_array_equal(rows[mask[again.choice_state]], np.tile(ruin.start, (3, 1)))
    np.testing.assert_array_equal(rows[~mask[again.choice_state]], ruin.transitions.toarray()[~mask[ruin.choice_state]])
    left = {again.state_name(s): int(np.diff(again.first_choice)[s]) for s in ends}
    assert left == {"0": 1, "2": 2}, "of choices that earn the same, one is left"
    worth = ruin.with_reward(np.arange(ruin.n_choices)).restarting_at(ends)
    np.testing.assert_array_equal(worth.reward, np.arange(ruin.n_choices))
    assert worth.ends["end"].tolist() == mask[worth.choice_state].tolist()


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        ([True, False, True], "action 'on' in state 'a' leads out of the kept states"),
        ([False, False, True], "action 'down' in state 'attic' leads out"),
        ([False, False, False], "start distribution lies partly outside"),
        ([True, True], "3"),
    ],
)
def test_restricting_refuses(keep, message):
    with pytest.raises(ModelError, match=message):
        three_rooms().restricted_to(keep)


@pytest.mark.parametrize("states", [[3], [-4], [True, False]])
def test_restarting_refuses_states_that_do_not_exist(states):
    with pytest.raises(ModelError):
        three_rooms().restarting_at(states)


# ---- refusals ---------------------------------------------------------------------------------

BAD = {
    "row below one": ({"transitions": [[0.5, 0.4], [0, 1], [1, 0]]}, "'stay' in state 'home' sum to 0.9, expected 1"),
    "row above one": ({"transitions": [[0.5, 0.5], [0, 1], [1, 0.5]]}, "'back' in state 'away' sum to 1.5, expected 1"),
    "row of zeros": ({"transitions": [[0.5, 0.5], [0, 0], [1, 0]]}, "'leave' in state 'home' sum to 0, expected 1"),
    "worst row": ({"transitions": [[0.5, 0.4], [0, 0.1], [1, 0]]}, "'leave' in state 'home' sum to 0.1"),
    "negative probability": (
        {"transitions": [[0.5, 0.5], [-0.5, 1.5], [1, 0]]},
        "reaching 'home' by action 'leave' in state 'home' is -0.5",
    ),
    "NaN probability": ({"transitions": [[0.5, NAN], [0, 1], [1, 0]]}, "reaching 'away' by action 'stay' .* is nan"),
    "infinite probability": ({"transitions": [[0.5, 0.5], [0, 1], [INF, 0]]}, "'back' in state 'away' is inf"),
    "NaN reward": ({"reward": [1, NAN, 2]}, "reward of action 'leave' in state 'home' is nan; rewards must be finite"),
    "infinite reward": ({"reward": [1, 2, -INF]}, "reward of action 'back' in state 'away' is -inf"),
    "short reward": ({"reward": [1, 2]}, r"one number for each of the 3 choices, found shape \(2,\)"),
    "square reward": ({"reward": np.ones((3, 2))}, r"one number for each of the 3 choices, found shape \(3, 2\)"),
    "sparse reward": ({"reward": sparse.csr_array(np.ones((2, 2)))}, r"transitions' shape \(3, 2\), found \(2, 2\)"),
    "flat transitions": ({"transitions": [1.0, 0.0, 0.0]}, "transitions"),
    "state without actions": ({"first_choice": [0, 3, 3]}, "state 'away' has no action: add a self-loop"),
    "states without actions": (
        {
            "transitions": np.eye(3)[:1],
            "reward": [0],
            "first_choice": [0, 1, 1, 1],
            "actions": [0],
            "state_names": None,
        },
        r"state 's1' has no action \(and 1 others have none\)",
    ),
    "first_choice too short": ({"first_choice": [0, 3]}, "first_choice has 2 entries, expected .* 3"),
    "first_choice too long": ({"first_choice": [0, 1, 2, 3]}, "first_choice has 4 entries, expected .* 3"),
    "first_choice ends early": (
        {"first_choice": [0, 1, 2]},
        "must rise from 0 to the number of choices, 3; found 0 to 2",
    ),
    "first_choice ends late": (
        {"first_choice": [0, 1, 4]},
        "must rise from 0 to the number of choices, 3; found 0 to 4",
    ),
    "first_choice begins late": (
        {"first_choice": [1, 2, 3]},
        "must rise from 0 to the number of choices, 3; found 1 to 3",
    ),
    "first_choice falls": ({"first_choice": [0, 4, 3]}, "first_choice must rise"),
    "first_choice of halves": (
        {"first_choice": [0.0, 1.5, 3.0]},
        "first_choice must be a list of integers, found float64",
    ),
    "first_choice square": ({"first_choice": [[0, 2, 3]]}, r"first_choice must be .* shape \(1, 3\)"),
    "no choices": ({"transitions": np.zeros((0, 2)), "reward": [], "first_choice": [0, 0, 0]}, "the model is empty"),
    "no states": ({"transitions": np.zeros((0, 0)), "reward": [], "first_choice": [0]}, "the model is empty"),
    "start below one": ({"start": [0.5, 0.4]}, "start distribution sums to 0.9, expected 1"),
    "negative start": ({"start": [1.5, -0.5]}, "start probability of state 'away' is -0.5"),
    "NaN start": ({"start": [NAN, 1.0]}, "start probability of state 'home' is nan"),
    "infinite start": ({"start": [0.0, INF]}, "start probability of state 'away' is inf"),
    "long start": ({"start": [1, 0, 0]}, r"start distribution must have 2 entries, found shape \(3,\)"),
    "start as an index": ({"start": 1}, r"start distribution must have 2 entries, found shape \(\)"),
    "action index too large": ({"actions": [0, 1, 3]}, "action indices must lie in 0..2, found 0..3"),
    "negative action index": ({"actions": [0, -1, 2]}, "action indices must lie in 0..2, found -1..2"),
    "action index beyond 32 bits": ({"actions": [0, 1, 2**32]}, "must lie in 0..2, found 0..4294967296"),
    "action index beyond 64 bits": (
        {"actions": np.array([0, 1, 2**63], np.uint64)},
        r"actions must be below 2\*\*63, found 9223372036854775808",
    ),
    "action index for no names": (
        {"actions": [0, 1, 10**6], "action_names": None},
        "the number 1,000,000, which is too",
    ),
    "half a character in a state": ({"state_names": ["a", "\ud800"]}, r"the name of state '\\ud800' cannot be encoded"),
    "half a character in an action": ({"action_names": ["a", "b", "c\udfff"]}, "the name of action"),
    "half a character in a label": ({"labels": {"\ud800": [True, False]}}, "the name of label"),
    "half a character in the name": ({"name": "\ud800"}, "the name of model"),
    "too few actions": ({"actions": [0, 1]}, r"one action for each of the 3 choices, found shape \(2,\)"),
    "actions of halves": ({"actions": [0.0, 0.5, 2.0]}, "actions must be a list of integers"),
    "too few state names": ({"state_names": ["home"]}, "1 state names for 2 states"),
    "short label": ({"labels": {"wet": [True]}}, r"label 'wet' must mark 2 states, found an array of shape \(1,\)"),
    "too few chances of an end": ({"ends": {"hole": [0.5]}}, r"end 'hole' must have 3 probabilities, found .* \(1,\)"),
    "chances in words": ({"ends": {"hole": ["a", "b", "c"]}}, "must have 3 probabilities, found <U1"),
    "chances beyond numbers": ({"ends": {"hole": [10**400] * 3}}, "must have 3 probabilities, found object"),
    "ragged chances": ({"ends": {"hole": [[1], [1, 2], 3]}}, "must have 3 probabilities, found object"),
    "an end that leads elsewhere": (
        {"ends": {"hole": [0, 0.6, 0]}},
        "higher probability than it leads back to the start",
    ),
    "a negative chance of an end": ({"ends": {"hole": [0.5, -0.1, 0.0]}}, "'hole' must be finite and not negative"),
    "an end without a chance": ({"ends": {"hole": [0.5, np.nan, 0.0]}}, "'hole' must be finite and not negative"),
    "ends that are too sure": ({"ends": {"a": [0.3, 0, 0], "b": [0.3, 0, 0]}}, "higher probability than it leads back"),
    "observations that are alike": ({"observations": [4, 4]}, "observations must be 2 different numbers"),
    "too many observations": ({"observations": [4, 5, 6]}, "observations must be 2 different numbers"),
    "half a character in an end": ({"ends": {"\ud800": [0.5, 0, 0]}}, "the name of end"),
    "long layout": ({"layout": Grid(np.arange(3), np.zeros((1, 3), bool))}, "layout places 3 states, the model has 2"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_model_is_refused_and_the_message_names_the_place(case):
    change, message = BAD[case]
    with pytest.raises(ModelError, match=message):
        small(**change)


@pytest.mark.parametrize("first_choice", [[0, 1, 2], [1, 2, 3], []])
def test_a_bad_first_choice_is_refused_also_where_the_actions_are_not_given(first_choice):
    with pytest.raises(ModelError):
        MDP.from_csr(ROWS, REWARD, first_choice)


DENSE = np.stack([np.eye(2), np.eye(2)[::-1]], axis=1)
BAD_DENSE = {
    "two axes": (lambda: MDP.from_dense(np.eye(2), [1, 2]), r"must have shape \(S, A, S\), found \(2, 2\)"),
    "not square": (
        lambda: MDP.from_dense(np.ones((2, 1, 3)), [1, 2]),
        r"must have shape \(S, A, S\), found \(2, 1, 3\)",
    ),
    "mask": (lambda: MDP.from_dense(DENSE, [1, 2], mask=[True]), r"mask must have shape \(2, 2\), found \(1,\)"),
    "reward": (lambda: MDP.from_dense(DENSE, [1, 2, 3]), r"reward must have shape .* found \(3,\)"),
    "nothing on offer": (
        lambda: MDP.from_dense(DENSE, [1, 2], mask=[[True, True], [False, False]]),
        "state 's1' has no action",
    ),
    "row": (lambda: MDP.from_dense(DENSE * [[[1.0]], [[0.5]]], [1, 2]), "action 'a0' in state 's1' sum to 0.5"),
    "empty": (lambda: MDP.from_dense(np.zeros((0, 0, 0)), []), "the model is empty"),
}


@pytest.mark.parametrize("case", BAD_DENSE)
def test_a_bad_dense_model_is_refused(case):
    make, message = BAD_DENSE[case]
    with pytest.raises(ModelError, match=message):
        make()


LOOP = ("a", "x", "a", 1.0, 0.0)
BAD_LISTS = {
    "nothing": ([], {}, "the model is empty: there are no transitions"),
    "too few entries": ([LOOP, ("a", "x", "a", 1.0)], {}, "transition 1 has 4 entries, expected 5"),
    "a state without actions": ([("a", "x", "b", 1.0, 0.0)], {}, "state 'b' has no action"),
    "unknown start": ([LOOP], {"start": "b"}, "start names state 'b', which no transition mentions"),
    "start below one": ([LOOP], {"start": {"a": 0.5}}, "start distribution sums to 0.5"),
    "unknown state in a label": ([LOOP], {"labels": {"end": ["b"]}}, "label 'end' names state 'b'"),
    "row": ([("a", "x", "a", 0.25, 0.0)], {}, "action 'x' in state 'a' sum to 0.25"),
    "infinite reward": ([("a", "x", "a", 1.0, INF)], {}, "reward of action 'x' in state 'a' is inf"),
    "negative probability": (
        [("a", "x", "a", 1.5, 0.0), ("a", "x", "b", -0.5, 0.0), ("b", "x", "b", 1.0, 0.0)],
        {},
        "reaching 'b' by action 'x' in state 'a' is -0.5",
    ),
    "negative probability that another makes up for": (
        [("a", "x", "a", 1.5, 0.0), ("a", "x", "a", -0.5, 0.0)],
        {},
        "action 'x' in state 'a' is -0.5",
    ),
}


@pytest.mark.parametrize("case", BAD_LISTS)
def test_a_bad_list_of_transitions_is_refused(case):
    rows, options, message = BAD_LISTS[case]
    with pytest.raises(ModelError, match=message):
        MDP.from_transitions(rows, **options)


def test_bad_grids_are_refused():
    with pytest.raises(ModelError, match=r"\(rows, columns\) array, not \(3,\)"):
        Grid(np.arange(3), np.zeros(3, bool))
    with pytest.raises(ModelError, match=r"must lie in 0..2 for a grid of shape \(1, 3\)"):
        Grid(np.arange(4), np.zeros((1, 3), bool))


def test_refusals_are_value_errors_and_manyways_errors():
    assert issubclass(ModelError, ValueError)
    assert issubclass(ModelError, mw.ManywaysError)


@pytest.mark.parametrize("name", KNOWN)
def test_every_model_survives_being_made_again_from_its_own_arrays(name):
    mdp = KNOWN[name].mdp
    again = MDP.from_csr(mdp.transitions, mdp.reward, mdp.first_choice, start=mdp.start, actions=mdp.actions)
    assert again.digest == mdp.digest
