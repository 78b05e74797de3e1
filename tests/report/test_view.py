"""What the page says about plans of all kinds."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
from breadth_objective import Breadth

import manyways as mw
from manyways.plans.certificate import Check
from manyways.report import Live, render, view_of
from manyways.report.minus import printed


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("criterion", [mw.Average(), mw.Discounted(0.9)], ids=str)
def test_models_without_choice_layout_or_labels(tmp_path, k, criterion):
    mdp = mw.MDP.from_transitions([("a", "go", "b", 1.0, 0.0), ("b", "back", "a", 1.0, 0.0)])
    text = mw.plan(mdp, k, criterion=criterion).report(tmp_path / "plans.html").read_text()
    assert text.count("<article") == k
    assert ("are nearly the same" in text) == (k > 1)


@pytest.mark.parametrize(
    ("rewards", "promise"),
    [
        ((1.0, 0.997, 0.996), "These plans earn 99.6 to 100 % of what the very best plan earns."),
        ((1.0, 1.0), "These plans earn 100 % of what the very best plan earns."),
        ((1.0, 0.512), "These plans earn 51 to 100 % of what the very best plan earns."),
        ((1.0, 0.518), "These plans earn 51 to 100 % of what the very best plan earns."),
        ((-1.0, -2.0), "These plans earn -2 to -1 per step, where no plan can earn more than -1."),
        ((1e-17, -1e-17, -3.0), "These plans earn -3 to 1e-17 per step, where no plan can earn more than 1e-17."),
    ],
)
def test_the_promise_is_kept(rewards, promise):
    mdp = mw.MDP.from_transitions([("a", f"stay {i}", "a", 1.0, x) for i, x in enumerate((*rewards, -5.0))])
    plans = mw.plan(mdp, len(rewards), 1000.0)
    np.testing.assert_array_equal(plans.rewards, rewards)
    assert view_of(plans)["promise"] == promise


@pytest.mark.parametrize(("k", "asked"), [(1, None), (2, "Keys: 1 and 2, Esc"), (3, "Keys: 1 to 3, Esc")])
def test_keys_are_told_where_there_is_something_to_choose(k, asked):
    page = render(view_of(mw.plan("four-rooms:1", k, tradeoff=1.0)))
    assert ("Press a plan" in page) == (asked is not None)
    assert (asked or "") in page


def test_minus_signs_are_printed_as_such():
    told = {
        "-3 to -1": "−3 to −1",
        "(-3)": "(−3)",
        "1e-09": "1e-09",
        "r-1, x=-3, '-3'": "r-1, x=-3, '-3'",
        "2-3": "2-3",
    }
    assert {text: printed(text) for text in told} == told
    rows = [("a", f"stay {i}", "a", 1.0, x) for i, x in enumerate((-1.0, -2.0, -5.0))]
    page = render(view_of(mw.plan(mw.MDP.from_transitions(rows), 2, 1000.0)))
    assert "These plans earn −2 to −1 per step, where no plan can earn more than −1." in page
    seen = re.sub(r"<(script|style|code|pre)\b.*?</\1>|<[^>]*>", "", page, flags=re.DOTALL)
    assert re.findall(r"[^\w=]-\d", seen) == []


def test_the_settings_of_the_model_stand_in_the_command_only(tmp_path):
    pytest.importorskip("gymnasium")
    page = (
        mw.plan("gym:FrozenLake-v1?map_name=8x8", 2, criterion=mw.Average()).report(tmp_path / "lake.html").read_text()
    )
    header, _, below = page.partition("</header>")
    assert "FrozenLake" in header
    assert "terminal=restart" not in header
    assert "map_name=8x8&amp;terminal=restart" in below
    assert "an episode that fails soon costs little" in page


def test_the_name_of_a_model_is_shown_as_it_is():
    mdp = dataclasses.replace(mw.four_rooms(1), name="ready? yes")
    shown = view_of(mw.plan(mdp, 2))
    assert shown["model"] == "ready? yes"
    assert "· <bdi>ready? yes</bdi></p>" in render(shown)


LIVE = Live(1, ({"number": 1, "label": "plans.mw: 3 plans"},), {}, 0)


@pytest.mark.parametrize("source", ["four-rooms:1", "gym:FrozenLake-v1"])
def test_objectives_without_a_tradeoff(source):
    if source.startswith("gym:"):
        pytest.importorskip("gymnasium")
    plans = mw.plan(source, 3, objective=Breadth())
    shown = view_of(plans)
    assert (plans.tradeoff, shown["settings"]["tradeoff"]) == (None, None)
    for page in (render(shown), render(shown, LIVE)):
        assert page.count("<article") == 3
        assert page.count('<circle class="dot"') >= 3
        assert "coverage of the choices" in page
        assert "orth of diversity" not in page
        assert "None" not in page.partition("<main>")[2].partition('<h2 id="curious-title"')[0]
    assert 'name="seed"' in render(shown, LIVE)
    assert 'name="tradeoff"' in render(view_of(mw.plan(source, 3, objective=mw.MeanDivergence())), LIVE)


def test_the_certificate_is_that_of_the_plans(rooms):
    page = render(view_of(rooms))
    assert [check["name"] for check in view_of(rooms)["certificate"]] == [c.name for c in rooms.certificate.checks]
    assert "<td>optimum proved</td>" in page
    assert "Certificate: every check passed" in page
    assert "not verified" not in page
    assert "Certificate" not in render(view_of(dataclasses.replace(rooms, certificate=None)))


def test_plans_that_are_not_verified_come_with_a_warning(rooms):
    certificate = mw.Certificate((Check("rewards", 0.5, 1e-9), Check("gap", 0.0, 1e-9), Check("<b>", np.inf, 1e-9)))
    wrong = dataclasses.replace(rooms, certificate=certificate, status=mw.Status.NOT_VERIFIED)
    for page in (render(view_of(wrong)), render(view_of(wrong), LIVE)):
        assert (
            "These plans are <b>not verified</b>. Failed checks: rewards, &lt;b&gt;. Figures on this page may be"
            in page
        )
        assert page.index("These plans are <b>not verified</b>") < page.index('<section id="plans"')
        assert "Certificate: NOT verified" in page
        assert "(proved)" not in page
        assert "seed 0: not verified: a check of the certificate failed" in page


def test_a_plan_that_chooses_at_random_says_where():
    rows = [
        ("a", "left", "b", 1.0, 1.0),
        ("a", "right", "c", 1.0, 1.0),
        ("b", "back", "a", 1.0, 0.0),
        ("c", "back", "a", 1.0, 0.0),
    ]
    mdp = mw.MDP.from_transitions(rows, start="a")
    plans = mw.plan(mdp, 1)
    chance = {"left": 0.91, "right": 0.09, "back": 1.0}
    policy = np.array([chance[mdp.action_name(x)] for x in range(mdp.n_choices)])
    mixed = dataclasses.replace(plans, policies=policy[None], occupancies=plans.criterion.occupancy(mdp, policy)[None])
    assert (
        "Chooses at random in 'a': 'left' in 91 %, 'right' in 9 % of cases." in view_of(mixed)["cards"][0]["sentences"]
    )
    assert not any("at random" in sentence for sentence in view_of(plans)["cards"][0]["sentences"])


def test_diversity_has_no_price_where_all_rewards_are_equal():
    rows = [("a", way, way, 1.0, reward) for way, reward in (("left", 1.0), ("right", 1.0), ("middle", 0.9))]
    rows += [(way, "back", "a", 1.0, 0.0) for way in ("left", "right", "middle")]
    mdp = mw.MDP.from_transitions(rows, start="a")
    assert view_of(mw.plan(mdp, 2, slack=0.01))["chart"] is None
    assert view_of(mw.plan(mdp, 3, slack=0.2))["chart"] is not None


def test_the_default_limit_of_the_length_of_episodes_is_listed():
    rows = [
        ("a", "go", "b", 1.0, 1.0),
        ("a", "wait", "a", 1.0, 0.0),
        ("b", "on", "goal", 1.0, 0.0),
        ("goal", "back", "a", 1.0, 0.0),
    ]
    mdp = mw.MDP.from_transitions(rows, start="a", labels={"goal": ["goal"]})
    plans = mw.plan(mdp, 1, criterion=mw.Episodic())
    assert plans.criterion.longest == 6.0, "twice the length of the best plan"
    assert "Episodes last at most 6 steps on average." in dict(view_of(plans)["facts"])["Limits"]
