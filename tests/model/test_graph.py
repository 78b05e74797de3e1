"""The graph of a model: weak accessibility is decided exactly, and a refusal says why."""

import numpy as np
import pytest
from scipy import sparse

import manyways as mw
from manyways import MDP, NotWeaklyAccessible
from manyways.model.graph import end_components, levels_towards, reachable_from_start, recurrent_core
from problems import (
    KINDS,
    KNOWN,
    all_deterministic_policies,
    choices_of,
    end_components_by_enumeration,
    random_mdp,
    reaches,
    recurrent_classes,
    two_traps,
)

RANDOM_MODELS = 80  # of each kind


def core_by_definition(mdp: MDP) -> np.ndarray | None:
    """(S,) Bertsekas, vol. II, section 4.2, word for word: the states that are recurrent under some
    policy, if any of them can be reached from any other; else None."""
    rows = mdp.transitions.toarray()
    recurrent = np.zeros(mdp.n_states, bool)
    for choices in all_deterministic_policies(mdp):
        for states in recurrent_classes(rows[choices]):
            recurrent[states] = True
    graph = np.array([rows[list(choices_of(mdp, s))].any(axis=0) for s in range(mdp.n_states)])
    return recurrent if reaches(graph)[np.ix_(recurrent, recurrent)].all() else None


def found_core(mdp: MDP) -> np.ndarray | None:
    try:
        return recurrent_core(mdp)
    except NotWeaklyAccessible:
        return None


@pytest.mark.parametrize("kind", KINDS)
def test_weak_accessibility_is_decided_as_defined(kind):
    rng = np.random.default_rng(KINDS.index(kind))
    accessible = 0
    for _ in range(RANDOM_MODELS):
        mdp = random_mdp(rng, kind=kind)
        expected, found = core_by_definition(mdp), found_core(mdp)
        assert (expected is None) == (found is None), mdp.transitions.toarray()
        if expected is not None and found is not None:
            np.testing.assert_array_equal(found, expected)
            accessible += 1
    assert accessible > 0
    assert kind == "dense" or accessible < RANDOM_MODELS  # both answers were asked for


@pytest.mark.parametrize("kind", KINDS)
def test_end_components_are_those_found_by_trying_all_sets_of_states(kind):
    rng = np.random.default_rng(100 + KINDS.index(kind))
    for _ in range(RANDOM_MODELS):
        mdp = random_mdp(rng, kind=kind)
        found = sorted(tuple(component.tolist()) for component in end_components(mdp))
        assert found == end_components_by_enumeration(mdp)


@pytest.mark.parametrize("name", KNOWN)
def test_a_model_is_weakly_accessible_exactly_if_it_has_one_end_component(name):
    mdp = KNOWN[name].mdp
    (component,) = end_components(mdp)
    np.testing.assert_array_equal(np.flatnonzero(recurrent_core(mdp)), component)


def test_states_outside_the_core_are_transient_whatever_one_does():
    mdp = MDP.from_transitions([("in", "go", "loop", 0.5, 0), ("in", "go", "in", 0.5, 0), ("loop", "go", "loop", 1, 0)])
    np.testing.assert_array_equal(recurrent_core(mdp), [False, True])


def test_one_must_not_be_able_to_stay_out_of_the_core():
    mdp = MDP.from_transitions([("in", "go", "loop", 1, 0), ("in", "wait", "in", 1, 0), ("loop", "go", "loop", 1, 0)])
    with pytest.raises(NotWeaklyAccessible, match="2 separate"):
        recurrent_core(mdp)


# ---- refusals ---------------------------------------------------------------------------------


def test_a_refusal_names_the_components_and_the_ways_out():
    with pytest.raises(NotWeaklyAccessible) as refusal:
        recurrent_core(two_traps())
    message = str(refusal.value)
    assert "two traps is not weakly accessible" in message
    assert "2 separate sets of states, {'heaven'}, {'hell'}" in message
    assert "Discounted(0.99)" in message
    assert "restarting_at" in message
    assert "restricted_to" not in message  # all of it can be reached


def test_a_refusal_offers_to_drop_what_cannot_be_reached():
    mdp = MDP.from_transitions([("a", "stay", "a", 1, 0), ("island", "stay", "island", 1, 0)])
    with pytest.raises(
        NotWeaklyAccessible, match=r"restricted_to\(manyways.reachable_from_start\(mdp\)\) \(1 of 2 states\)"
    ):
        recurrent_core(mdp)


def test_a_refusal_names_a_few_of_many_components():
    rows = [(i, "stay", i, 1.0, 0.0) for i in range(7)]
    with pytest.raises(NotWeaklyAccessible, match=r"7 separate .*\{'0'\}, \{'1'\}, \{'2'\}, \{'3'\} and 3 more"):
        recurrent_core(MDP.from_transitions(rows))


def test_a_refusal_names_a_few_of_many_states():
    ring = [(i, "go", (i + 1) % 5, 1.0, 0.0) for i in range(5)]
    with pytest.raises(NotWeaklyAccessible, match=r"\{'0', '1', '2', ... 5 states\}, \{'away'\}"):
        recurrent_core(MDP.from_transitions([*ring, ("away", "stay", "away", 1.0, 0.0)]))


def test_the_ways_out_work():
    mdp = two_traps()
    mw.Polytope(mdp, mw.Discounted(0.99))
    assert recurrent_core(mdp.restarting_at([1, 2])).all()
    island = MDP.from_transitions([("a", "stay", "a", 1, 0), ("island", "stay", "island", 1, 0)])
    assert recurrent_core(island.restricted_to(reachable_from_start(island))).all()


def test_the_average_criterion_refuses_and_the_discounted_one_does_not():
    with pytest.raises(NotWeaklyAccessible):
        mw.Polytope(two_traps())
    assert mw.Polytope(two_traps(), mw.Discounted(0.5)).size == 4


# ---- reaching ---------------------------------------------------------------------------------


def levels_by_hand(mdp: MDP, targets: np.ndarray) -> list[int]:
    support = mdp.transitions.toarray() > 0
    level = [0 if target else -1 for target in targets]
    for depth in range(1, mdp.n_states + 1):
        for state in range(mdp.n_states):
            ahead = support[list(choices_of(mdp, state))].any(axis=0)
            if level[state] < 0 and any(ahead[t] and level[t] == depth - 1 for t in range(mdp.n_states)):
                level[state] = depth
    return level


@pytest.mark.parametrize("kind", KINDS)
def test_levels_count_the_fewest_choices(kind):
    rng = np.random.default_rng(200 + KINDS.index(kind))
    for _ in range(40):
        mdp = random_mdp(rng, max_states=6, kind=kind)
        targets = rng.random(mdp.n_states) < 0.3
        assert levels_towards(mdp, targets).tolist() == levels_by_hand(mdp, targets)


def test_what_the_start_reaches():
    rng = np.random.default_rng(5)
    for _ in range(100):
        mdp = random_mdp(rng, max_states=6)
        support = mdp.transitions.toarray() > 0
        graph = np.array([support[list(choices_of(mdp, s))].any(axis=0) for s in range(mdp.n_states)])
        expected = reaches(graph)[mdp.start > 0].any(axis=0)
        np.testing.assert_array_equal(reachable_from_start(mdp), expected)


def corridor(length: int) -> MDP:
    """One long line: in each state one step on or one back; from its far end only to its beginning."""
    here = np.arange(length)
    ahead, behind = (here + 1) % length, np.maximum(here - 1, 0)
    behind[-1] = 0
    target = np.stack([ahead, behind], axis=1).ravel()
    matrix = sparse.csr_array((np.ones(2 * length), (np.arange(2 * length), target)), shape=(2 * length, length))
    return MDP.from_csr(matrix, np.zeros(2 * length), 2 * np.arange(length + 1), name="corridor")


def test_a_corridor_of_twenty_thousand_states_is_no_deep_recursion():
    length = 20_000
    mdp = corridor(length)
    assert recurrent_core(mdp).all()
    assert [component.size for component in end_components(mdp)] == [length]
    last = np.arange(length) == length - 1
    np.testing.assert_array_equal(levels_towards(mdp, last), length - 1 - np.arange(length))
    assert reachable_from_start(mdp).all()


def test_a_one_way_corridor_into_a_trap_is_peeled_state_by_state():
    length = 5_000
    target = np.minimum(np.arange(length) + 1, length - 1)
    matrix = sparse.csr_array((np.ones(length), (np.arange(length), target)), shape=(length, length))
    core = recurrent_core(MDP.from_csr(matrix, np.zeros(length), np.arange(length + 1)))
    assert np.flatnonzero(core).tolist() == [length - 1]
