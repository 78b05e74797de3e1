"""`verify` compares the variables of states with those of the model given."""

from dataclasses import replace

import numpy as np

import manyways as mw

WEAR, PARTS = [0, 1, 0, 1], [0.0, 0.0, np.nan, 1.0]


def ring(**variables) -> mw.MDP:
    return mw.MDP.from_csr(np.eye(4)[[1, 2, 3, 0]], np.zeros(4), np.arange(5), variables=variables)


def failed(given: mw.MDP, planned: mw.MDP) -> list[str]:
    plans = mw.plan(planned, 1)
    return [check.name for check in mw.verify(given, plans).failed]


def test_the_same_variables():
    assert failed(ring(wear=WEAR, parts=PARTS), ring(parts=PARTS, wear=WEAR)) == []
    assert failed(ring(wear=np.array(WEAR, float)), ring(wear=WEAR)) == []


def test_other_values_or_names():
    mdp = ring(wear=WEAR, parts=PARTS)
    assert failed(ring(wear=[0, 1, 1, 1], parts=PARTS), mdp) == ["names and ends"]
    assert failed(ring(wear=PARTS, parts=WEAR), mdp) == ["names and ends"]
    assert failed(ring(age=WEAR, parts=PARTS), mdp) == ["names and ends"]
    assert failed(ring(wear=list("0101"), parts=PARTS), mdp) == ["names and ends"]


def test_a_model_that_does_not_say_agrees_with_every_other():
    mdp = ring(wear=WEAR)
    assert failed(ring(), mdp) == failed(mdp, ring()) == []
    named = replace(ring(), state_names=("wear7", "wear8", "wear9", "wear10"))
    assert failed(named, mdp) == [], "names are compared as names"
