"""Choices of one state with the same effect."""

import numpy as np

import manyways as mw
from manyways.model.effects import by_effect


def test_choices_that_lead_to_the_same_states_and_bring_the_same_have_one_number():
    lake = mw.read("gym:FrozenLake-v1")
    numbers = by_effect(lake)
    dense = lake.transitions.toarray()
    for x in range(lake.n_choices):
        for y in range(x):
            same = lake.choice_state[x] == lake.choice_state[y] and np.allclose(dense[x], dense[y], rtol=0, atol=1e-12)
            same = same and np.isclose(lake.reward[x], lake.reward[y], rtol=1e-9, atol=0)
            same = same and all(np.isclose(ends[x], ends[y], rtol=1e-9, atol=0) for ends in lake.ends.values())
            assert (numbers[x] == numbers[y]) == same
    at = lake.first_choice[0]  # at the start, beside two shores
    down, right = (next(x for x in range(at, at + 4) if lake.action_name(x) == name) for name in ("down", "right"))
    assert numbers[down] == numbers[right]
    assert numbers.max() + 1 == len(np.unique(numbers))


def test_choices_that_differ_in_reward_or_in_an_end_have_numbers_of_their_own():
    mdp = mw.MDP.from_transitions([("a", "x", "a", 1.0, 1.0), ("a", "y", "a", 1.0, 2.0), ("a", "z", "a", 1.0, 1.0)])
    assert by_effect(mdp).tolist() == [0, 1, 0]
    world = mw.four_rooms(0)
    assert by_effect(world).tolist() == list(range(world.n_choices))
