"""The commands plan, show and verify: what they print and write, and their exit codes."""

from __future__ import annotations

import dataclasses
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from commands import BAD_INPUT, DONE, FAILED, PLAN, files

import manyways as mw
from manyways.behaviours import BEHAVIOURS
from manyways.formats import FORMATS
from manyways.formats.writer import write_model
from manyways.methods import METHODS
from manyways.objectives import OBJECTIVES
from manyways.plans.certificate import Check
from manyways.web.store import Choices, choices_path

pytestmark = pytest.mark.usefixtures("here")


def test_plan_prints_a_table(manyways, here):
    answer = manyways(*PLAN)
    assert (answer.code, answer.err) == (DONE, "")
    assert answer.out.startswith("map: 2 plans")
    expected = mw.plan("map.txt", 2, 8.0, method=mw.FrankWolfe())
    for i, reward in enumerate(expected.rewards, start=1):
        assert f" {i} {reward:.4f} " in answer.words
    assert (
        f"objective {expected.objective:.4f} (mean reward + 8 × mean pairwise divergence): "
        f"mean reward {expected.rewards.mean():.4f}, diversity {expected.diversity:.4f}"
    ) in answer.words
    assert "converged" in answer.words
    assert files(here) == set()


def test_plan_writes_what_it_is_asked_to(manyways, here):
    answer = manyways(*PLAN, "--out", "plans.mw", "--picture", "plans.png")
    assert answer.code == DONE
    assert "plans written to plans.mw" in answer.words
    assert "picture written to plans.png" in answer.words
    assert files(here) == {"plans.mw", "plans.png"}
    assert mw.load("plans.mw").certificate.ok
    assert (here / "plans.png").read_bytes().startswith(b"\x89PNG")


def test_plan_as_json(manyways):
    answer = manyways(*PLAN, "--seed", "3", "--json", "--out", "plans.mw")
    assert (answer.code, answer.err) == (DONE, "")
    plans = mw.load("plans.mw")
    found = answer.json
    assert found["model"] == {
        "name": "map",
        "states": 15,
        "choices": plans.mdp.n_choices,
        "digest": mw.read("map.txt").digest,
        "costs": False,
    }
    assert found["limits"] == {"slack": None, "floor": None, "longer": None, "way": None, "randomised": False}
    assert found["guarantee"] is None
    assert found["k"] == 2
    assert found["seed"] == 3
    assert found["tradeoff"] == 8.0
    assert found["maximised"] == "MeanDivergence(tradeoff=8.0)"
    assert found["status"] == "converged"
    assert found["objective"] == plans.objective
    assert found["rewards"] == plans.rewards.tolist()
    assert found["distances"] == plans.distances.tolist()
    assert found["diversity"] == plans.diversity
    assert found["optimal_reward"] == plans.optimal_reward
    assert found["verified"] is True
    assert found["failed_checks"] == []
    assert found["written"] == {"plans": "plans.mw"}


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        (["--discount", "0.9"], {"criterion": mw.Discounted(0.9)}),
        (["--behaviour", "states"], {"behaviour": mw.States()}),
        (["--behaviour", "labels"], {"behaviour": mw.Labels()}),
        (["--behaviour", "state-actions"], {"behaviour": mw.StateActions()}),
        (["--seed", "7"], {"seed": 7}),
        (["--k", "3"], {"k": 3}),
        (["--tradeoff", "1.5"], {"tradeoff": 1.5}),
    ],
)
def test_options_reach_the_plan(manyways, options, settings):
    answer = manyways(*PLAN, *options, "--json")
    expected = mw.plan("map.txt", **({"k": 2, "tradeoff": 8.0, "method": mw.FrankWolfe()} | settings))
    assert answer.json["objective"] == expected.objective
    assert answer.json["criterion"] == repr(expected.criterion)
    assert answer.json["behaviour"] == repr(expected.behaviour)


def test_the_default_tradeoff_is_an_eighth_of_the_spread_of_rewards(manyways):
    found = manyways("plan", "map.txt", "--k", "2", "--method", "frank-wolfe", "--json").json
    best = mw.plan("map.txt", 1)
    time, reward = best.occupancies[0], best.mdp.reward
    assert found["tradeoff"] == pytest.approx(time @ abs(reward - best.optimal_reward) / 8, rel=1e-9)
    assert found["limits"]["slack"] == 0.1
    assert found["limits"]["floor"] == pytest.approx(0.9 * best.optimal_reward)
    assert min(found["rewards"]) >= found["limits"]["floor"] - 1e-9


def test_a_default_limit_that_is_not_ten_percent_of_the_best_is_noted(manyways, here):
    (here / "toss.csv").write_text("state,action,next,prob,reward\na,go,b,1,10\nb,back,a,1,-9.6\na,wait,a,1,0\n")
    answer = manyways("plan", "toss.csv", "--k", "2")
    assert answer.code == DONE
    assert answer.err.startswith(
        "manyways: the best reward, 0.2 per step, is small against the rewards of which it is the sum, so 10 % of it means "
        "nothing: plans may be worse by 10 % of the spread of rewards along the best plan instead; use --floor to set another limit"
    )
    assert "; the best possible is 0.2." in answer.words
    assert manyways("plan", "toss.csv", "--k", "2", "--floor", "0.1").err == ""
    assert manyways("plan", "map.txt", "--k", "2").err == ""


def test_a_tradeoff_of_infinity_is_no_number_in_json(manyways):
    found = manyways("plan", "map.txt", "--k", "2", "--tradeoff", "inf", "--slack", "20%", "--json").json
    assert found["tradeoff"] is None
    assert found["maximised"] == "MeanDivergence(tradeoff=inf)"
    assert found["limits"]["slack"] == 0.2
    assert min(found["rewards"]) >= 0.8 * found["optimal_reward"]
    assert found["guarantee"].endswith("within 20 % of the best possible.")


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        (["--slack", "5 %"], {"slack": 0.05}),
        (["--slack", "0.05"], {"slack": 0.05}),
        (["--floor", "20"], {"floor": 20.0}),
        (["--longer", "30%"], {"longer": 0.3}),
        (["--slack", "20%", "--randomised"], {"slack": 0.2, "randomised": True}),
        (["--slack", "20%", "--tradeoff", "3"], {"slack": 0.2, "tradeoff": 3.0}),
        (["--per", "episode"], {"criterion": mw.Episodic()}),
        (["--per", "episode", "--longest", "12"], {"criterion": mw.Episodic(12)}),
        (["--longest", "12"], {"criterion": mw.Episodic(12)}),
        (["--per", "step"], {"criterion": mw.Average()}),
        (["--apart", "1.5"], {"behaviour": mw.Near(1.5)}),
        (["--diversity", "least", "--tradeoff", "3"], {"objective": mw.LeastDivergence(3.0)}),
        (["--diversity", "joint"], {"objective": mw.JointDivergence(), "fewer": True}),
        (["--exactly-k"], {"fewer": False}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_options_for_limits_and_values_reach_the_plan(manyways, options, settings):
    manyways("plan", "map.txt", "--k", "2", *options, "--out", "plans.mw")
    found = mw.load("plans.mw")
    fewer = "tradeoff" not in settings and "objective" not in settings
    expected = mw.plan("map.txt", 2, **({"fewer": fewer} | settings))
    assert (found.policies == expected.policies).all()
    assert (found.limits, found.criterion) == (expected.limits, expected.criterion)
    assert (found.behaviour, found.maximised) == (expected.behaviour, expected.maximised)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--slack", "5%", "--floor", "1"], "give the least value of a plan in one way: either --slack"),
        (["--slack", "-5%"], "slack must be a finite number of at least 0, found -0.05"),
        (["--slack", "nan"], "slack must be a finite number of at least 0, found nan"),
        (["--floor", "100"], "no plan of map has a value of 100; the best one has 25.555 per step"),
        (
            ["--tradeoff", "inf"],
            "a tradeoff of infinity means nothing but diversity, so plans need a limit; give --slack",
        ),
        (["--per", "day"], "--per must be step or episode, found 'day'"),
        (["--longest", "9", "--per", "step"], "--longest limits the length of episodes: leave --per step out"),
        (["--per", "step", "--discount", "0.9"], "--discount counts the sum of discounted rewards: leave --per"),
        (["--per", "episode", "--longest", "2"], "no plan of map has episodes of at most 2 steps on average"),
        (["--behaviour", "states", "--apart", "2"], "the behaviour states has no setting radius; leave --apart out"),
        (["--slack", "5%", "--method", "projected-gradient"], "ProjectedGradient("),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_limits_that_mean_nothing_are_refused_in_one_sentence(manyways, here, options, message):
    answer = manyways("plan", "map.txt", "--k", "2", *options)
    assert (answer.code, answer.out) == (BAD_INPUT, "")
    assert answer.err.startswith(f"manyways: {message}")
    assert len(answer.err.splitlines()) == 1
    assert files(here) == set()


def test_a_share_that_is_no_number_is_answered_with_the_usage(manyways):
    answer = manyways("plan", "map.txt", "--slack", "ten")
    assert answer.code == BAD_INPUT
    assert "expected a share such as 10% or 0.1, found 'ten'" in " ".join(answer.err.split())


def test_a_share_above_one_needs_a_percent_sign(manyways):
    answer = manyways("plan", "map.txt", "--slack", "10")
    assert answer.code == BAD_INPUT
    assert "a share above 1 needs a percent sign: write 10% or 0.1" in " ".join(answer.err.split())
    assert manyways("plan", "map.txt", "--k", "1", "--slack", "1000%").code == DONE


def test_an_unknown_diversity_is_answered_with_the_known_ones(manyways):
    answer = manyways(*PLAN, "--diversity", "median")
    assert answer.code == BAD_INPUT
    words = ", ".join(OBJECTIVES.words())
    assert answer.err == f"manyways: --diversity must be one of {words}, found 'median'\n"


def test_show_repeats_the_table(manyways, here, saved, plans):
    answer = manyways("show", saved)
    assert (answer.code, answer.err) == (DONE, "")
    assert answer.out.startswith("square: 2 plans")
    assert f"objective {plans.objective:.4f}" in answer.words
    assert files(here) == set()


def test_show_as_json_with_a_picture(manyways, here, saved, plans):
    answer = manyways("show", saved, "--json", "--picture", "plans.svg")
    assert answer.json["objective"] == plans.objective
    assert answer.json["written"] == {"picture": "plans.svg"}
    assert files(here) == {"plans.svg"}


def test_verify_lists_its_checks(manyways, saved, plans):
    answer = manyways("verify", saved)
    assert (answer.code, answer.err) == (DONE, "")
    assert answer.out.startswith("verified")
    assert all(check.name in answer.words for check in mw.verify(plans.mdp, plans).checks)
    assert "FAILED" not in answer.out


def test_verify_as_json(manyways, saved, plans):
    found = manyways("verify", saved, "--json").json
    assert found["ok"] is True
    assert [check["name"] for check in found["checks"]] == [check.name for check in mw.verify(plans.mdp, plans).checks]
    assert all(check["ok"] and check["error"] <= check["tolerance"] for check in found["checks"])


def test_verify_does_not_believe_the_file(manyways, plans):
    dataclasses.replace(plans, objective=plans.objective + 1).save("wrong.mw")
    answer = manyways("verify", "wrong.mw")
    assert answer.code == FAILED
    assert answer.out.startswith("NOT verified")
    found = manyways("verify", "wrong.mw", "--json")
    assert found.code == FAILED
    assert found.json["ok"] is False
    assert [check["name"] for check in found.json["checks"] if not check["ok"]] == ["objective"]


# ---- verify --model ----------------------------------------------------------------------------


@pytest.mark.parametrize("discount", [(), ("--discount", "0.9")], ids=["average", "discounted"])
def test_verify_against_the_model_read_again(manyways, discount):
    manyways(*PLAN, *discount, "--out", "plans.mw")
    answer = manyways("verify", "plans.mw", "--model", "map.txt")
    assert (answer.code, answer.err) == (DONE, "")
    assert answer.out.startswith("verified")
    assert manyways("verify", "plans.mw", "--model", "map.txt", "--json").json["ok"] is True


def test_verify_against_a_discounted_model_with_episodes(manyways):
    """Ends of episodes are absorbing for a discount and restart otherwise."""
    pytest.importorskip("gymnasium")
    for discount in ((), ("--discount", "0.9")):
        manyways("plan", "gym:FrozenLake-v1", "--k", "2", *discount, "--out", "plans.mw")
        assert manyways("verify", "plans.mw", "--model", "gym:FrozenLake-v1").code == DONE


def test_verify_against_a_model_that_has_changed(manyways, here):
    manyways(*PLAN, "--out", "plans.mw")
    (here / "map.txt").write_text("S..#.\n.....\n....G\n")
    answer = manyways("verify", "plans.mw", "--model", "map.txt")
    assert (answer.code, answer.err) == (FAILED, "")
    assert answer.out.startswith("NOT verified")
    found = manyways("verify", "plans.mw", "--model", "map.txt", "--json")
    assert found.code == FAILED
    assert next(check["name"] for check in found.json["checks"] if not check["ok"]) == "model"
    assert manyways("verify", "plans.mw").code == DONE, "the copy in the file has not changed"


def test_verify_says_in_what_another_model_differs(manyways, here):
    (here / "table.csv").write_text("state,action,next,cost\nhome,bus,work,3\nhome,bike,work,1\nwork,back,home,2\n")
    (here / "other.csv").write_text("state,action,next,reward\nhome,bus,work,3\nhome,bike,work,1\nwork,back,home,2\n")
    (here / "less.csv").write_text("state,action,next,cost\nhome,bus,work,3\nwork,back,home,2\n")
    manyways("plan", "other.csv", "--minimise", "--k", "2", "--slack", "100%", "--out", "plans.mw")
    for model, words in {
        "table.csv": [],
        "other.csv": ["what is minimised (the costs)", "--model 'other.csv?minimise=true'"],
        "less.csv": ["number of choices (2 instead of 3)", "--model 'other.csv?minimise=true'"],
    }.items():
        answer = manyways("verify", "plans.mw", "--model", model)
        assert (answer.code == DONE) == (not words)
        assert all(word in answer.out for word in words)
        assert ("differs" in answer.out) == bool(words)
        assert bool(manyways("verify", "plans.mw", "--model", model, "--json").json["other"]) == bool(words)


def test_verify_says_where_perhaps_only_the_order_differs(manyways, here):
    rows = ["home,bus,work,3", "home,bike,work,1", "home,walk,park,4", "park,walk,work,2", "work,back,home,2"]
    for name, order in (
        ("one.csv", rows),
        ("other.csv", rows[3:] + rows[:3]),
        ("dearer.csv", rows[3:] + rows[:2] + ["home,walk,park,5"]),
    ):
        (here / name).write_text("\n".join(["state,action,next,cost", *order]) + "\n")
    manyways("plan", "one.csv", "--k", "2", "--out", "plans.mw")
    answer = manyways("verify", "plans.mw", "--model", "other.csv")
    assert answer.code == FAILED
    assert "Perhaps only the order of states or choices differs" in answer.words
    assert "The plans were made for: one.csv; to check against it: --model one.csv" in answer.words
    assert "Perhaps" not in manyways("verify", "plans.mw", "--model", "dearer.csv").words


def test_verify_against_a_model_of_the_same_shape_with_other_rewards(manyways):
    mdp = mw.read("map.txt")
    mw.plan(mdp, 2).save("plans.mw")
    write_model(dataclasses.replace(mdp, reward=mdp.reward + 1e-9), Path("other.npz"))
    found = manyways("verify", "plans.mw", "--model", "other.npz", "--json")
    assert found.code == FAILED
    assert not next(check for check in found.json["checks"] if check["name"] == "model")["ok"]


def test_verify_against_a_model_that_cannot_be_read(manyways, saved):
    answer = manyways("verify", saved, "--model", "none.txt")
    assert (answer.code, answer.out) == (BAD_INPUT, "")
    assert answer.err.startswith("manyways: there is no file 'none.txt'")


def test_out_of_time(manyways):
    answer = manyways(*PLAN, "--time-limit", "1e-9", "--json", "--out", "plans.mw")
    assert answer.code == FAILED
    assert answer.json["status"] == "time limit"
    assert mw.load("plans.mw").status == mw.Status.TIME_LIMIT


def test_out_of_iterations(manyways, here):
    (here / "corridor.txt").write_text("#####\n#S.G#\n#####\n")
    command = ("plan", "corridor.txt", "--k", "4", "--tradeoff", "60", "--method", "projected-gradient", "--json")
    answer = manyways(*command)
    assert answer.code == FAILED
    assert answer.json["status"] == "iteration limit"
    assert answer.json["verified"] is True


# ---- plans that are not verified ---------------------------------------------------------------


@pytest.fixture
def wrong_plans(plans, monkeypatch) -> mw.PlanSet:
    """What planning returns is not verified."""
    certificate = mw.Certificate((Check("occupancies", 0.5, 1e-9), Check("gap", 0.0, 1e-6)))
    wrong = dataclasses.replace(plans, certificate=certificate, status=mw.Status.NOT_VERIFIED)
    monkeypatch.setattr("manyways.planning.plan", lambda *_, **__: wrong)
    return wrong


@pytest.mark.usefixtures("wrong_plans")
def test_a_failed_certificate_is_reported(manyways):
    answer = manyways(*PLAN, "--out", "plans.mw")
    assert answer.code == FAILED
    assert "not verified: a check of the certificate failed" in answer.words
    assert "NOT verified: occupancies (error 5.0e-01, allowed 1e-09)" in answer.words
    assert "the model probably mixes too slowly for double precision; leave out transitions" in answer.words
    shown = manyways("show", "plans.mw")
    assert shown.code == DONE
    assert "NOT verified: occupancies" in shown.words


@pytest.mark.usefixtures("wrong_plans")
def test_a_failed_certificate_is_reported_as_json(manyways):
    answer = manyways(*PLAN, "--json")
    assert answer.code == FAILED
    assert answer.json["verified"] is False
    assert answer.json["status"] == "not verified: a check of the certificate failed"
    assert answer.json["failed_checks"] == ["occupancies"]


# ---- words for methods and behaviours ----------------------------------------------------------


def option_help(manyways, command: str, option: str) -> str:
    return re.split(r" --[a-z]", manyways(command, "--help").words.partition(f" {option} ")[2])[0]


@pytest.mark.parametrize(
    ("option", "registry"), [("--method", METHODS), ("--behaviour", BEHAVIOURS), ("--diversity", OBJECTIVES)]
)
def test_the_help_lists_all_that_is_registered(manyways, option, registry):
    listed = re.search(r"(?<=: )[a-z, -]+", option_help(manyways, "plan", option))
    assert listed is not None
    own = [word for word in registry.words() if registry.named(word).__module__.startswith("manyways.")]
    if option == "--diversity":
        own.remove("representative")  # --for preferences
    assert sorted(re.split(", | or ", listed[0].strip())) == sorted(own)


def test_the_help_of_a_source_lists_all_endings(manyways):
    text = manyways("plan", "--help").words
    missing = [ending for kind in FORMATS for ending in kind.endings if ending not in text]
    assert missing == []


@pytest.mark.parametrize("option", ["starts", "workers"])
def test_settings_that_a_method_does_not_have_are_refused(manyways, here, option):
    answer = manyways(*PLAN, f"--{option}", "3")
    assert answer.code == BAD_INPUT
    assert answer.err == f"manyways: the method frank-wolfe has no setting {option}; leave --{option} out\n"
    assert files(here) == set()


def test_settings_that_a_method_has_are_passed_on(manyways):
    answer = manyways("plan", "map.txt", "--k", "2", "--starts", "3", "--workers", "2", "--json")
    assert answer.json["method"] == repr(mw.VertexAscent(starts=3, workers=2))


def test_a_class_whose_settings_have_no_option_is_refused(manyways, monkeypatch):
    @dataclasses.dataclass(frozen=True)
    class Around(mw.Behaviour):
        angle: int

        def on(self, mdp: mw.MDP) -> Any:
            raise AssertionError(f"{mdp} should not be reached without an angle")

    monkeypatch.setattr(BEHAVIOURS, "_classes", dict(BEHAVIOURS._classes))
    mw.register(Around)
    answer = manyways(*PLAN, "--behaviour", "around")
    assert answer.code == BAD_INPUT
    assert answer.err == "manyways: the behaviour around needs angle, for which there is no option: plan in Python\n"


# ---- keep --------------------------------------------------------------------------------------


def test_plans_of_a_file_can_be_kept(manyways):
    manyways("plan", "map.txt", "--k", "3", "--tradeoff", "8", "--out", "plans.mw")
    assert manyways("plan", "map.txt", "--keep", "plans.mw:2", "--out", "more.mw").code == DONE
    old, new = mw.load("plans.mw"), mw.load("more.mw")
    assert [new[i].key for i in new.kept] == [old[1].key]
    assert (new.avoided == old.policies[[0, 2]]).all()
    assert [new.titles[i] for i in new.kept] == [old.titles[1]]


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        ("saved.mw", "--keep expects a file and numbers of its plans, such as plans.mw:1,3, found 'saved.mw'"),
        ("saved.mw:3", "--keep: saved.mw has plans 1 to 2, found 3"),
        (
            "saved.mw:1",
            "--keep: saved.mw has plans for another model, square, and plan 1 does not fit this one: the plan does not know the state 'r0c3' of map",
        ),
        ("none.mw:1", "there is no file none.mw"),
    ],
)
@pytest.mark.usefixtures("saved")
def test_plans_that_cannot_be_kept(manyways, keep, message):
    answer = manyways(*PLAN, "--keep", keep)
    assert (answer.code, answer.err) == (BAD_INPUT, f"manyways: {message}\n")


def test_plans_are_kept_for_a_model_with_a_ban(manyways, here):
    """Of two ways to work, one by bus: the plan without the bus is kept, the other one is refused."""
    rows = [("home", "bus", "work", 1.0, 3.0), ("home", "bike", "work", 1.0, 3.0), ("work", "back", "home", 1.0, 1.0)]
    rows += [("home", "walk", "work", 1.0, 2.9)]
    mdp = mw.MDP.from_transitions(rows)
    write_model(mdp, here / "commute.npz")
    banned = mdp.without(actions="bus")
    write_model(banned, here / "banned.npz")
    mw.plan(mdp, 3, slack=0.2).save(here / "three.mw")
    plans = mw.load("three.mw")
    bus = [i for i in range(3) if plans.policies[i][0] > 0.5]
    others = [str(i + 1) for i in range(3) if i not in bus]
    answer = manyways("plan", "banned.npz", "--k", "2", "--keep", f"three.mw:{','.join(others)}", "--out", "two.mw")
    assert answer.code == BAD_INPUT  # nothing would be planned
    assert manyways("plan", "banned.npz", "--k", "2", "--keep", f"three.mw:{others[0]}", "--out", "two.mw").code == DONE
    kept = mw.load("two.mw")
    assert kept[kept.kept[0]].policy.on(mdp).probabilities.tolist() == plans.policies[int(others[0]) - 1].tolist()
    answer = manyways("plan", "banned.npz", "--keep", f"three.mw:{bus[0] + 1}")
    assert "takes 'bus' in 'home', which is banned" in answer.err


def test_the_report_has_what_people_said_when_the_file_was_served(manyways, saved, here):
    plans = mw.load(saved)
    with closing(Choices(choices_path(here / saved))) as choices:
        choices.add_plan_file(plans.mdp.digest, (here / saved).read_bytes(), [plan.key for plan in plans], "saved")
        choices.mark(plans[1].key, "name", "", "The long way")
        choices.mark(plans[1].key, "note", "Ann", "Nice <b>view</b>")
        choices.mark(plans[1].key, "star", "", True)
    assert manyways("show", saved, "--report", "plans.html").code == DONE
    page = (here / "plans.html").read_text()
    assert "The long way" in page
    assert "Nice &lt;b&gt;view&lt;/b&gt;" in page
    assert "★ starred" in page
    assert 'data-form="note"' not in page


def test_a_method_that_cannot_keep_plans(manyways):
    manyways(*PLAN, "--out", "plans.mw")
    answer = manyways(*PLAN, "--keep", "plans.mw:1")
    assert answer.code == BAD_INPUT
    assert answer.err.endswith("cannot plan around plans to keep or avoid; use --method vertex-ascent\n")
