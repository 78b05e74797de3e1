"""Keep some plans, have the others replaced: what stays stays to the bit, what is new differs from all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import manyways as mw
from problems import jsd, random_accessible_mdp, two_state_chain, vertices

CRITERIA = [mw.Average(), mw.Discounted(0.9)]


@pytest.fixture(scope="module")
def rooms() -> mw.PlanSet:
    return mw.plan("nine-rooms:7", k=4, tradeoff=8.0)


@pytest.fixture(scope="module")
def renewed(rooms) -> mw.PlanSet:
    return mw.plan(rooms.mdp, 4, 8.0, keep=rooms.policies[[0, 2]], avoid=rooms.policies[[1, 3]])


def test_what_is_kept_stays_to_the_bit_and_keeps_its_key(rooms, renewed):
    assert len(renewed.kept) == 2
    for place, old in zip(renewed.kept, (0, 2), strict=True):
        np.testing.assert_array_equal(renewed.policies[place], rooms.policies[old])
        assert renewed[place].key == rooms[old].key
    assert renewed.k == len({renewed[i].key for i in range(4)}) == 4


def test_what_is_new_differs_from_what_it_replaces(rooms, renewed):
    new = [i for i in range(renewed.k) if i not in renewed.kept]
    apart = [jsd(renewed.occupancies[i], rooms.occupancies[j]) for i in new for j in (1, 3)]
    assert min(apart) > 0.1
    assert renewed.diversity > 0.4


def test_the_renewed_set_is_verified_and_can_be_had_again_from_its_file(tmp_path, renewed):
    assert renewed.certificate.ok
    assert mw.verify(renewed.mdp, renewed).ok
    read = mw.load(renewed.save(tmp_path / "plans.mw"))
    assert read.kept == renewed.kept
    np.testing.assert_array_equal(read.avoided, renewed.avoided)
    again = mw.plan(
        read.mdp, read.k, read.tradeoff, seed=read.seed, keep=read.policies[list(read.kept)], avoid=read.avoided
    )
    np.testing.assert_array_equal(again.policies, renewed.policies)


@pytest.mark.parametrize("criterion", CRITERIA, ids=str)
def test_one_new_plan_beside_a_kept_one_is_nearly_always_the_best_there_is(criterion):
    found = tried = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        mdp = random_accessible_mdp(rng, 3, 3)
        kept = mw.plan(mdp, 1, criterion=criterion)
        others = [row for row in vertices(mdp, criterion) if np.abs(row - kept.occupancies[0]).max() > 1e-9]
        if not others:
            continue
        tried += 1
        values = [row @ mdp.reward / 2 + jsd(row, kept.occupancies[0]) for row in others]
        pair = mw.plan(mdp, 2, 1.0, criterion=criterion, keep=kept.policies)
        best = max(values) + kept.occupancies[0] @ mdp.reward / 2
        assert pair.objective <= best + 1e-7
        found += pair.objective >= best - 1e-7
    assert tried > 40
    assert found >= 0.95 * tried


def test_a_random_policy_can_be_kept():
    mdp = two_state_chain().mdp
    rooms = mw.four_rooms(0)
    rng = np.random.default_rng(1)
    weight = rng.random(rooms.n_choices)
    policy = weight / np.add.reduceat(weight, rooms.first_choice[:-1])[rooms.choice_state]
    plans = mw.plan(rooms, 2, 8.0, keep=policy[None])
    np.testing.assert_array_equal(plans.policies[plans.kept[0]], policy)
    assert plans.certificate.ok
    only = mw.plan(mdp, 2, 1.0, keep=np.ones((1, 2)))
    assert only.status is mw.Status.FEWER_PLANS


def test_kept_plans_keep_their_titles(tmp_path, rooms):
    new = mw.plan(rooms.mdp, 3, 8.0, keep=[rooms[1], replace(rooms[0].policy, title="the usual way")])
    assert {new.titles[i] for i in new.kept} == {rooms.titles[1], "the usual way"}
    again = mw.load(new.save(tmp_path / "new.mw"))
    assert again.titles == new.titles
    assert len(set(new.titles)) == 3
    assert mw.plan(rooms.mdp, 2, 8.0, keep=rooms.policies[:1]).kept_titles == ()


def test_nothing_kept_is_plain_planning(rooms):
    same = mw.plan(rooms.mdp, 4, 8.0, keep=np.empty((0, rooms.mdp.n_choices)))
    np.testing.assert_array_equal(same.policies, rooms.policies)
    assert same.kept == ()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"keep": "all"}, "k must be at least 5"),
        ({"keep": np.ones((1, 3))}, r"keep must be an \(m, 1725\) array"),
        ({"avoid": np.ones(1725)}, r"avoid must be an \(m, 1725\) array"),
        ({"keep": np.ones((1, 1725))}, "must be >= 0 and sum to 1"),
        ({"keep": "one", "method": mw.FrankWolfe()}, r"cannot plan around plans to keep or avoid"),
    ],
)
def test_bad_requests_are_refused(rooms, settings, message):
    named = {"all": rooms.policies, "one": rooms.policies[:1]}
    given = {name: named[value] if isinstance(value, str) else value for name, value in settings.items()}
    with pytest.raises(mw.SettingError, match=message):
        mw.plan(rooms.mdp, 4, 8.0, **given)


@pytest.mark.parametrize("kept", [[4], [-1], ["1"], [True], "01", [0.0]])
def test_a_file_that_names_plans_it_has_not_is_refused(tmp_path, rooms, kept):
    object.__setattr__(rooms, "kept", kept)
    try:
        path = rooms.save(tmp_path / "plans.mw")
    finally:
        object.__setattr__(rooms, "kept", ())
    with pytest.raises(mw.PlanFileError, match="the plans kept must be numbers from 0 to 3"):
        mw.load(path)


@pytest.mark.parametrize("source", ["four-rooms:3", "four-rooms:3?correct_transition=0.8"])
def test_a_model_knows_what_it_was_read_from(tmp_path, source):
    mdp = mw.read(source)
    assert mdp.source == source
    assert mw.load(mw.plan(mdp, 1).save(tmp_path / "plans.mw")).mdp.source == source
    assert mdp.restarting_at([0]).source is None
    assert mw.four_rooms(3).source is None


def test_plans_can_be_kept_as_they_are_and_need_no_arrays(rooms):
    expected = mw.plan(rooms.mdp, 3, 8.0, keep=rooms.policies[[0, 1]])
    for given in ([rooms[0], rooms[1].policy], (rooms[0], rooms[1]), list(rooms)[:2]):
        found = mw.plan(rooms.mdp, 3, 8.0, keep=given)
        np.testing.assert_array_equal(found.policies, expected.policies)
    whole = mw.plan(rooms.mdp, rooms.k + 1, 8.0, keep=rooms)
    assert {whole[i].key for i in whole.kept} == {plan.key for plan in rooms}
    other = mw.plan("four-rooms:0", 1)
    with pytest.raises(mw.SettingError, match="keep has a plan for four-rooms:0, which is another model"):
        mw.plan(rooms.mdp, 3, 8.0, keep=[other[0]])
