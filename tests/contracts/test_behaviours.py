"""What every behaviour owes: a linear map that shares out the time of each choice.

Registered behaviours are covered by themselves; one that needs settings or a special model joins in `EXAMPLES`.
"""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import manyways as mw
from manyways.behaviours import BEHAVIOURS, Features, Near

WORLD = mw.room_world(11, 2)
FEATURES = np.random.default_rng(0).random((3, WORLD.n_states))
NEEDING_SETTINGS = {"features": Features(FEATURES, ["light", "noise", "view"])}
EXAMPLES = {word: NEEDING_SETTINGS.get(word) or BEHAVIOURS.named(word)() for word in BEHAVIOURS.words()} | {
    "doors": mw.Labels(["door"]),
    "by choice": Features(np.random.default_rng(1).random((2, WORLD.n_choices)), ["light", "noise"]),
    "far": Near(8.0),
}
each_behaviour = pytest.mark.parametrize("behaviour", EXAMPLES.values(), ids=EXAMPLES)
seeds = st.integers(0, 2**32 - 1)


@each_behaviour
@given(seeds)
def test_images_of_distributions_are_distributions(behaviour, seed):
    x = np.random.default_rng(seed).dirichlet(np.full(WORLD.n_choices, 0.1), size=2)
    image = behaviour.on(WORLD).forward(x)
    assert image.min() >= 0
    np.testing.assert_allclose(image.sum(axis=1), 1.0, atol=1e-12)


@each_behaviour
@given(seeds)
def test_maps_are_linear_and_backward_is_the_transpose(behaviour, seed):
    rng, compared = np.random.default_rng(seed), behaviour.on(WORLD)
    x, y = rng.random((2, WORLD.n_choices))
    np.testing.assert_allclose(
        compared.forward(2 * x + 3 * y), 2 * compared.forward(x) + 3 * compared.forward(y), atol=1e-10
    )
    z = rng.random(compared.forward(x).shape)
    assert compared.forward(x) @ z == pytest.approx(x @ compared.backward(z))


@each_behaviour
def test_rows_may_be_mapped_together_or_one_by_one(behaviour):
    compared, x = behaviour.on(WORLD), np.random.default_rng(0).random((3, WORLD.n_choices))
    np.testing.assert_allclose(compared.forward(x), np.stack([compared.forward(row) for row in x]))
    y = np.random.default_rng(1).random(compared.forward(x).shape)
    np.testing.assert_allclose(compared.backward(y), np.stack([compared.backward(row) for row in y]))


@each_behaviour
def test_groups_say_where_each_choice_counts(behaviour):
    compared = behaviour.on(WORLD)
    if compared.groups is not None:
        for choice in (0, 7, WORLD.n_choices - 1):
            image = compared.forward(np.eye(WORLD.n_choices)[choice])
            assert image[compared.groups[choice]] == 1.0


@each_behaviour
def test_descriptions_are_phrases(behaviour):
    words = behaviour.describe()
    assert words
    assert not words.endswith(".")


@each_behaviour
def test_plans_are_proved_saved_and_verified(behaviour, tmp_path):
    plans = mw.plan(WORLD, k=2, behaviour=behaviour, method=mw.VertexAscent(starts=1, exchanges=False))
    assert plans.certificate is not None
    assert plans.certificate.ok
    again = mw.load(plans.save(tmp_path / "plans.mw"))
    assert again.behaviour == behaviour
    assert mw.verify(again.mdp, again).ok


@each_behaviour
def test_images_are_as_exact_as_the_proofs_assume(behaviour):
    """The map as a matrix of fractions: every entry of an image is within `most_terms` units of rounding of it."""
    compared = behaviour.on(WORLD)
    x = np.random.default_rng(5).dirichlet(np.full(WORLD.n_choices, 0.3))
    rows = np.stack([compared.forward(row) for row in np.eye(WORLD.n_choices)])
    image = compared.forward(x)
    for place in range(0, len(image), 7):
        exact = sum(Fraction(a) * Fraction(b) for a, b in zip(rows[:, place].tolist(), x.tolist(), strict=True))
        # the entries of the matrix are themselves rounded on the way through the map
        assert abs(Fraction(image[place]) - exact) <= 2 * compared.most_terms * Fraction(2) ** -53 * exact
