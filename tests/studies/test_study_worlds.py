"""Generated worlds of the preference study."""

import numpy as np
import pytest

import manyways as mw
from manyways.studies.study_worlds import GENERATED, study_world


@pytest.mark.parametrize("kind", GENERATED)
@pytest.mark.parametrize("seed", range(3))
def test_a_generated_world_is_known_by_its_seed(kind, seed):
    mdp = study_world(f"{kind}:{seed}")
    assert mdp.digest == study_world(f"{kind}:{seed}").digest
    assert mdp.digest != study_world(f"{kind}:{seed + 1}").digest
    assert mdp.name == f"{kind}:{seed}"
    assert mw.Polytope(mdp).optimum.value > 0, "the goal can be reached, and is worth the way"


def test_a_network_has_labels_and_no_map():
    mdp = study_world("network:0")
    assert mdp.layout is None
    assert list(mdp.labels) == ["park", "toll", "goal"]
    (goal,) = np.flatnonzero(mdp.labels["goal"])
    assert np.diff(mdp.first_choice)[goal] == 1
    leads_back = mdp.transitions[mdp.first_choice[goal]]
    assert leads_back @ mdp.start == 1
    moves = mdp.transitions.toarray()
    assert moves.max(axis=1).min() == pytest.approx(0.95)


def test_other_sources_are_read():
    assert study_world("nine-rooms:3").digest == mw.nine_rooms(3).digest
    with pytest.raises(mw.SourceError, match="field:x"):
        study_world("field:x")
