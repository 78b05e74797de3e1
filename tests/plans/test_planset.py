"""`plan` and what it gives: consistent, repeatable, kept in files, drawn."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

import manyways as mw
from manyways.draw import occupancy_maps
from manyways.formats.text_maps import world_from_text
from manyways.plans.checker import SetProof

SMALL = world_from_text("S..#.\n..#..\n....G", "small")
CRITERIA = [mw.Average(), mw.Discounted(0.9)]
BEHAVIOURS = [mw.StateActions(), mw.States(), mw.Labels(), mw.Labels(("goal", "wall"))]
METHODS = [
    mw.FrankWolfe(),
    mw.FrankWolfe(iterations=2, tolerance=0.0, shrinkage=0.25, smoothing=1e-6),
    mw.ProjectedGradient(iterations=3),
    mw.ProjectedGradient(iterations=2, steps=0.01, mapping_tolerance=1e-6),
    mw.ProjectedGradient(iterations=2, steps=(0.01, 0.005)),
    mw.ProjectedGradient(iterations=1, rough_iterations=2),
]


def small_plans(k: int = 2, tradeoff: float | None = 8.0, **settings: Any) -> mw.PlanSet:
    return mw.plan(SMALL, k, tradeoff, **({"method": mw.FrankWolfe()} | settings))


@pytest.fixture(scope="module")
def plans() -> mw.PlanSet:
    return small_plans(3)


@pytest.fixture(scope="module")
def rooms() -> mw.PlanSet:
    return mw.plan("four-rooms:1", k=2, tradeoff=8, method=mw.FrankWolfe())


# ---- one consistent answer --------------------------------------------------------------------

SETTINGS = [
    {"k": k, "criterion": criterion, "behaviour": behaviour, "method": method}
    for k, criterion, behaviour, method in [
        *product([1, 3], CRITERIA, BEHAVIOURS[:1], METHODS[:1]),
        *product([2], CRITERIA, BEHAVIOURS[1:], METHODS[:1]),
        *product([2], CRITERIA, BEHAVIOURS[:1], METHODS[1:]),
    ]
]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: "-".join(map(str, s.values())))
def test_the_numbers_belong_together(settings):
    plans, k = small_plans(**settings), settings["k"]
    assert plans.k == k
    assert plans.policies.shape == plans.occupancies.shape == (k, SMALL.n_choices)
    per_step = plans.occupancies @ SMALL.reward
    assert plans.rewards * (1 - plans.criterion.discount or 1.0) == pytest.approx(per_step, abs=1e-12)
    assert plans.objective == pytest.approx(per_step.mean() + plans.tradeoff * plans.diversity, abs=1e-12)
    assert (np.diff(plans.rewards) <= 0).all(), "best first"
    assert plans.optimal_reward >= plans.rewards[0] - 1e-9
    assert plans.distances.shape == (k, k)
    assert (plans.distances == plans.distances.T).all()
    assert (np.diag(plans.distances) == 0).all()
    assert ((plans.distances >= 0) & (plans.distances <= np.log(2))).all()
    assert plans.diversity == pytest.approx(np.mean([plans.distances[p] for p in combinations(range(k), 2)] or [0.0]))
    assert (plans.criterion, plans.behaviour, plans.method) == tuple(list(settings.values())[1:])
    assert plans.gap >= -1e-9
    assert plans.certificate.ok


def test_plans_for_a_world_by_name(rooms):
    assert rooms.mdp.digest == mw.four_rooms(1).digest
    assert (rooms.k, rooms.tradeoff, rooms.seed) == (2, 8.0, 0)
    assert rooms.status == mw.Status.CONVERGED
    assert rooms.diversity > 0.5
    assert rooms.certificate.ok


def test_occupancies_are_what_the_policies_do(plans):
    for policy, occupancy in zip(plans.policies, plans.occupancies, strict=True):
        assert mw.Average().occupancy(SMALL, policy) == pytest.approx(occupancy, abs=1e-9)


def test_one_plan_is_plain_planning():
    plans = small_plans(1)
    assert plans.rewards[0] == pytest.approx(plans.optimal_reward)
    assert plans.objective == pytest.approx(plans.optimal_reward)
    assert plans.diversity == 0.0
    assert plans.distances.tolist() == [[0.0]]


def test_worthless_diversity_gives_the_same_plan_over_and_over():
    plans = small_plans(3, tradeoff=0.0)
    assert plans.rewards == pytest.approx(np.full(3, plans.optimal_reward))
    assert plans.near_duplicates == [(0, 1), (0, 2), (1, 2)]


def test_different_plans_are_no_near_duplicates(rooms):
    assert rooms.near_duplicates == []


@pytest.mark.parametrize(("goal", "step"), [(200.0, -1.2), (1.0, -1.0)])
def test_diversity_is_worth_an_eighth_of_the_spread_of_rewards_by_default(goal, step):
    """Which does not depend on which reward counts as zero, nor on a penalty that nobody pays."""
    mdp = world_from_text("S..\n..G", "short", goal_reward=goal, step_reward=step)
    best = mw.Polytope(mdp).optimum
    spread = best.occupancy @ abs(mdp.reward - best.value)
    for other in (mdp, mdp.with_reward(mdp.reward - 7.0)):
        plans = mw.plan(other, 2, method=mw.FrankWolfe())
        assert plans.tradeoff == pytest.approx(spread / 8)
        assert plans.tradeoff > 0


def test_where_every_step_of_the_best_plan_pays_the_same_that_counts():
    """The goal costs more than the other steps, so the best plan never goes there."""
    mdp = world_from_text("S..\n..G", "short", goal_reward=-3.0, step_reward=-1.0)
    plans = mw.plan(mdp, 2, method=mw.FrankWolfe())
    assert plans.optimal_reward == pytest.approx(-1.0)
    assert plans.tradeoff == pytest.approx(1 / 8)


def test_diversity_is_worth_one_where_nothing_is_worth_anything():
    mdp = world_from_text("S..\n..G", "free", goal_reward=0.0, step_reward=0.0, wall_reward=0.0)
    assert mw.plan(mdp, 2, method=mw.FrankWolfe()).tradeoff == 1.0


def test_repr_is_one_line(plans):
    odd = dataclasses.replace(plans, mdp=dataclasses.replace(SMALL, name="two\nlines"))
    for each in (plans, odd, plans.certificate):
        assert len(repr(each).splitlines()) == 1
    assert repr(plans).startswith("PlanSet('small', k=3, objective=")


def test_a_plan_set_cannot_be_changed(plans):
    with pytest.raises(dataclasses.FrozenInstanceError):
        plans.objective = 1e9
    for name in ("policies", "occupancies", "rewards", "distances"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(plans, name)[0] = 0.0


# ---- repeatable -------------------------------------------------------------------------------


def assert_same_bits(one: mw.PlanSet, other: mw.PlanSet, *, times: bool = True) -> None:
    """Everything equal; the times that the runs took only if asked for."""
    for field in dataclasses.fields(mw.PlanSet):
        here, there = getattr(one, field.name), getattr(other, field.name)
        if isinstance(here, np.ndarray):
            assert here.dtype == there.dtype, field.name
            assert np.array_equal(here, there), field.name
        elif field.name == "mdp":
            assert_same_model(here, there)
        elif field.name == "proof":
            assert_same_proof(here, there)
        elif field.name == "trace":
            for column, values in vars(here).items():
                if times or column != "seconds":
                    assert np.array_equal(values, vars(there)[column]), column
        elif times or field.name != "seconds":
            assert here == there, field.name
            assert type(here) is type(there), field.name


def assert_same_proof(one: SetProof, other: SetProof) -> None:
    """All vectors equal."""
    for here, there in zip((one, one.best_plan, *one.plans), (other, other.best_plan, *other.plans), strict=True):
        for name, value in vars(here).items():
            if isinstance(value, (np.ndarray, int)):
                assert np.array_equal(value, vars(there)[name]), name


def assert_same_model(one: mw.MDP, other: mw.MDP) -> None:
    assert one.digest == other.digest
    assert (one.name, one.action_names, one.state_names) == (other.name, other.action_names, other.state_names)
    assert (one.actions == other.actions).all()
    assert list(one.labels) == list(other.labels)
    assert (one.layout is None) == (other.layout is None)
    if one.layout is not None:
        assert (one.layout.cells == other.layout.cells).all()
        assert (one.layout.blocked == other.layout.blocked).all()


@pytest.mark.parametrize("method", METHODS[:3], ids=str)
def test_same_seed_same_bits(method):
    assert_same_bits(small_plans(3, seed=5, method=method), small_plans(3, seed=5, method=method), times=False)


def test_another_seed_starts_elsewhere():
    starts = {float(small_plans(3, seed=seed).trace.objective[0]) for seed in range(5)}
    assert len(starts) == 5


@pytest.mark.parametrize(
    "change",
    [{"occupancies": 1e-16}, {"policies": 1e-16}, {"rewards": 1e-13}, {"distances": 1e-16}, {"objective": 1e-13}],
)
def test_the_comparison_notices_the_last_bit(plans, change):
    ((name, amount),) = change.items()
    with pytest.raises(AssertionError):
        assert_same_bits(plans, dataclasses.replace(plans, **{name: getattr(plans, name) + amount}))


# ---- watched ----------------------------------------------------------------------------------


def test_progress_is_reported():
    seen: list[mw.Progress] = []
    plans = small_plans(progress=seen.append)
    first, *rest = seen
    assert (first.doing, first.done, first.total) == ("finding the best plan", 0, 1)
    assert [now.objective for now in rest][: len(plans.trace)] == plans.trace.objective.tolist()
    assert all(0 <= now.done <= now.total for now in rest)


def test_what_blocks_the_way_may_be_called_anything(tmp_path):
    plans = small_plans()
    for means in ("$x^{$", "<b>", "{x}"):
        layout = dataclasses.replace(plans.mdp.layout, blocked_means=means)
        dressed = dataclasses.replace(plans, mdp=dataclasses.replace(plans.mdp, layout=layout))
        assert dressed.draw(tmp_path / "plans.png").exists()
        assert "<b>" not in dressed.report(tmp_path / "plans.html").read_text().partition("legend")[2][:400]
    for means in ("\ud800", "x" * 61):
        with pytest.raises(mw.ModelError, match=r"cannot be encoded|at most 60 characters"):
            dataclasses.replace(plans.mdp.layout, blocked_means=means)


def test_out_of_time_is_a_status():
    plans = small_plans(time_limit_s=1e-9)
    assert plans.status == mw.Status.TIME_LIMIT
    assert plans.certificate.ok


def test_ctrl_c_keeps_the_best_so_far():
    def impatient(now: mw.Progress) -> None:
        if now.done == 1:
            signal.raise_signal(signal.SIGINT)

    plans = small_plans(3, progress=impatient)
    assert plans.status == mw.Status.INTERRUPTED
    assert plans.objective > plans.trace.objective[0]
    assert plans.certificate.ok


# ---- bad settings -----------------------------------------------------------------------------


HUGE = 10**400
"""A whole number that no float can hold."""


class Unused(mw.Method):
    """A method that must not be asked."""

    def run(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("a bad setting must be found before the work")


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        *[("k", k, f"k must be an integer of at least 1, found {k!r}") for k in (0, -1, 2.5, True, "3", None)],
        *[("seed", s, f"seed must be an integer of at least 0, found {s!r}") for s in (-1, 1.5, "x", None, False)],
        *[
            ("tradeoff", t, f"the tradeoff must be a finite number of at least 0, found {t!r}")
            for t in (-1.0, float("nan"), "x", True, [1.0])
        ],
        *[("time_limit_s", t, f"the time limit must be a positive number of seconds, found {t}") for t in (0, -1)],
        *[("time_limit_s", t, f"the time limit must be a finite number, found {t!r}") for t in (float("nan"), "x")],
    ],
)
def test_bad_settings_are_refused_before_the_work(setting, value, message):
    with pytest.raises(mw.SettingError) as caught:
        small_plans(**{setting: value}, method=Unused())
    assert message in str(caught.value)


@pytest.mark.parametrize("setting", ["tradeoff", "time_limit_s"])
def test_a_number_beyond_all_floats_is_refused_before_the_work(setting):
    with pytest.raises(mw.SettingError, match=r"must be a finite number.*, found 1000"):
        small_plans(**{setting: HUGE}, method=Unused())


@pytest.mark.parametrize("k", [np.int64(2), np.int32(2)])
def test_numbers_of_numpy_are_numbers(k):
    plans = small_plans(k, tradeoff=np.float32(8), seed=np.int64(0))
    assert_same_bits(plans, small_plans(2), times=False)


@pytest.mark.parametrize("source", ["no-such-world:1", 7])
def test_bad_sources_are_refused(source):
    with pytest.raises(mw.SourceError):
        mw.plan(source, 2, method=Unused())


def test_labels_that_the_model_lacks():
    with pytest.raises(mw.SettingError, match="small has no label 'window'; it has goal, start, wall"):
        small_plans(behaviour=mw.Labels(("window",)))


# ---- kept in files ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        *({"criterion": c, "behaviour": b} for c, b in product(CRITERIA, BEHAVIOURS)),
        *({"method": method} for method in METHODS),
        {"method": mw.FrankWolfe(iterations=np.int64(3))},
        {"k": 1},
        {"time_limit_s": 1e-9},
    ],
    ids=lambda s: "-".join(map(str, s.values())),
)
def test_saved_and_loaded_is_the_same(tmp_path, settings):
    plans = small_plans(**settings)
    path = plans.save(tmp_path / "plans.mw")
    again = mw.load(path)
    assert path == tmp_path / "plans.mw"
    assert_same_bits(plans, again)
    assert mw.verify(again.mdp, again).ok
    assert mw.verify(SMALL, again).ok


def test_a_model_without_layout_and_with_names_is_kept(tmp_path):
    mdp = mw.MDP.from_transitions(
        [("café", "go", "bar", 1.0, 0.0), ("bar", "go", "café", 0.5, 1.0), ("bar", "go", "bar", 0.5, 1.0)],
        labels={"[b]old": ["bar"]},
    )
    plans = mw.plan(mdp, 2, method=mw.FrankWolfe())
    assert_same_bits(plans, mw.load(str(plans.save(str(tmp_path / "plans.mw")))))


def test_a_set_that_failed_its_checks_is_kept_too(tmp_path, plans):
    wrong = dataclasses.replace(plans, rewards=plans.rewards[:1])
    failed = dataclasses.replace(plans, certificate=mw.verify(SMALL, wrong))
    assert not failed.certificate.ok
    assert mw.load(failed.save(tmp_path / "plans.mw")).certificate == failed.certificate


def test_a_set_that_was_never_checked_is_kept_too(tmp_path, plans):
    unchecked = dataclasses.replace(plans, certificate=None)
    assert mw.load(unchecked.save(tmp_path / "plans.mw")).certificate is None


def test_same_content_same_bytes(tmp_path, plans):
    first = plans.save(tmp_path / "first.mw").read_bytes()
    assert plans.save(tmp_path / "second.mw").read_bytes() == first
    assert mw.load(tmp_path / "first.mw").save(tmp_path / "third.mw").read_bytes() == first


def test_a_file_is_replaced_and_can_be_read_by_others(tmp_path, plans):
    path = tmp_path / "plans.mw"
    path.write_text("old")
    plans.save(path)
    umask = os.umask(0)
    os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask
    assert os.listdir(tmp_path) == ["plans.mw"]


# ---- damaged files ----------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path, plans) -> Path:
    return plans.save(tmp_path / "plans.mw")


def refusal(path: Path) -> str:
    with pytest.raises(mw.PlanFileError) as caught:
        mw.load(path)
    message = str(caught.value)
    assert str(path) in message
    assert len(message.splitlines()) == 1
    return message


def rewrite(
    path: Path,
    *,
    header: Callable[[dict[str, Any]], object] | None = None,
    arrays: dict[str, Callable[[np.ndarray], Any]] | None = None,
    without: str | None = None,
) -> Path:
    """Change the header or some arrays of a file, keeping it a sound archive."""
    with zipfile.ZipFile(path) as old:
        parts = {name: old.read(name) for name in old.namelist() if name != without}
    if header is not None:
        content = json.loads(parts["header.json"])
        header(content)
        parts["header.json"] = json.dumps(content).encode()
    for name, change in (arrays or {}).items():
        buffer = io.BytesIO()
        np.save(buffer, change(np.load(io.BytesIO(parts[f"{name}.npy"]))), allow_pickle=True)
        parts[f"{name}.npy"] = buffer.getvalue()
    with zipfile.ZipFile(path, "w") as new:
        for name, part in parts.items():
            new.writestr(name, part)
    return path


def test_rewriting_alone_does_no_damage(saved, plans):
    assert_same_bits(mw.load(rewrite(saved, header=lambda _: None, arrays={"policies": lambda x: x})), plans)


def test_missing_file(tmp_path):
    assert refusal(tmp_path / "none.mw") == f"there is no file {tmp_path / 'none.mw'}"


def test_folder_instead_of_a_file(tmp_path):
    assert "is a folder" in refusal(tmp_path)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999])
def test_truncated_file(saved, share):
    content = saved.read_bytes()
    saved.write_bytes(content[: int(share * len(content))])
    assert "truncated" in refusal(saved)


def test_not_an_archive(saved):
    saved.write_text("S.G\n")
    assert "is not a manyways plans file" in refusal(saved)


def test_archive_without_header(saved):
    assert "is not a manyways plans file: it has no header" in refusal(rewrite(saved, without="header.json"))


@pytest.mark.parametrize(
    ("text", "message"), [("{", "damaged"), ("[]", "is not a manyways plans file"), ("\xff", "damaged")]
)
def test_header_that_is_none(saved, text, message):
    with zipfile.ZipFile(saved, "w") as archive:
        archive.writestr("header.json", text.encode("latin-1"))
    assert message in refusal(saved)


def test_other_schema(saved):
    assert "is not a manyways plans file" in refusal(rewrite(saved, header=lambda h: h.update(schema="recipes")))


@pytest.mark.parametrize("version", [0, 4, "1", None, True])
def test_other_version(saved, version):
    message = refusal(rewrite(saved, header=lambda h: h.update(version=version)))
    assert f"has version {version!r} of the manyways plans format, expected 1 or 2 or 3" in message


SHAPES: dict[str, Callable[[np.ndarray], Any]] = {
    "row missing": lambda x: x[:-1],
    "row too many": lambda x: np.concatenate([x, x[:1]]),
    "empty": lambda x: x[:0],
    "one more axis": lambda x: x[None],
    "scalar": lambda x: x.ravel()[0],
    "text": lambda x: np.full(x.shape, "x"),
}
RESULTS = ("policies", "occupancies", "rewards", "distances")
MODEL = [
    f"model/{name}"
    for name in [
        "probability",
        "next_state",
        "row_begin",
        "reward",
        "first_choice",
        "start",
        "actions",
        "label0",
        "cells",
    ]
]


@pytest.mark.parametrize("name", [*RESULTS, "trace/objective", "trace/oracle_calls", *MODEL])
def test_arrays_of_the_wrong_shape(saved, name):
    sound = saved.read_bytes()
    for change in SHAPES.values():
        saved.write_bytes(sound)
        assert "damaged" in refusal(rewrite(saved, arrays={name: change}))


@pytest.mark.parametrize("name", [*RESULTS, "trace/step", "model/reward", "model/label1"])
def test_missing_array(saved, name):
    assert "damaged" in refusal(rewrite(saved, without=f"{name}.npy"))


@pytest.mark.parametrize("name", [*RESULTS, "model/reward", "model/probability", "model/start"])
def test_numbers_that_are_none(saved, name):
    sound = saved.read_bytes()
    for bad in (np.nan, np.inf):
        saved.write_bytes(sound)

        def spoil(x: np.ndarray, bad: float = bad) -> np.ndarray:
            x.flat[-1] = bad
            return x

        assert "damaged" in refusal(rewrite(saved, arrays={name: spoil}))


@pytest.mark.parametrize("name", ["reward", "label1"])
def test_tampered_model(saved, name):
    message = refusal(rewrite(saved, arrays={f"model/{name}": lambda x: ~x if x.dtype == bool else 2 * x}))
    assert "its model is not the one that was planned for" in message


@pytest.mark.parametrize("shift", [-5, 5, 10**9])
def test_model_that_leads_to_states_that_are_not_there(saved, shift):
    assert "damaged" in refusal(rewrite(saved, arrays={"model/next_state": lambda x: x + np.int32(shift)}))


def test_model_with_rows_out_of_order_does_not_crash_the_program(saved):
    def spoil(begin: np.ndarray) -> np.ndarray:
        begin[3] = 10**8
        return begin

    rewrite(saved, arrays={"model/row_begin": spoil})
    code = "import sys, manyways\ntry: manyways.load(sys.argv[1])\nexcept manyways.PlanFileError: sys.exit(7)"
    assert subprocess.run([sys.executable, "-c", code, str(saved)], check=False, capture_output=True).returncode == 7


class Bomb:
    """Pickled, it makes a file when it is read."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (self.path, "w")


def test_pickled_objects_are_refused_and_not_run(saved, tmp_path):
    bomb = np.array([Bomb(tmp_path / "exploded")], dtype=object)
    assert "damaged" in refusal(rewrite(saved, arrays={"rewards": lambda _: bomb}))
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize(
    ("part", "key", "value"),
    [
        *[("result", "status", value) for value in ("HAPPY", None, 7)],
        *[("result", "objective", value) for value in ("high", None, [1.0])],
        pytest.param("result", "objective", HUGE, id="result-objective-huge"),
        *[("settings", "objective", {"type": "MeanDivergence", "tradeoff": value}) for value in ("high", -1.0, [2.0])],
        *[("settings", "seed", value) for value in ("x", 1.5)],
        *product(["settings"], ["objective", "method", "criterion", "behaviour"], ["x", None, {}, {"type": "Unheard"}]),
        *[("settings", name, {"type": "Grid"}) for name in ("objective", "method", "criterion", "behaviour")],
        ("settings", "method", {"type": "FrankWolfe", "speed": 11}),
        ("settings", "method", {"type": "FrankWolfe", "iterations": -1}),
        ("settings", "method", {"type": "Average"}),
        ("settings", "criterion", {"type": "States"}),
        ("settings", "behaviour", {"type": "FrankWolfe"}),
        ("settings", "criterion", {"type": "Discounted", "discount": 2.0}),
        ("model", "digest", "0" * 64),
        ("model", "labels", None),
        ("model", "action_names", ["only one"]),
    ],
)
def test_header_with_nonsense(saved, part, key, value):
    message = refusal(rewrite(saved, header=lambda h: h[part].update({key: value})))
    assert "is damaged" in message or ("cannot be read here: there is no" in message and part == "settings")


@pytest.mark.parametrize("part", ["model", "settings", "result", "versions", "certificate"])
def test_header_with_a_part_missing(saved, part):
    assert "damaged" in refusal(rewrite(saved, header=lambda h: h.pop(part)))


@pytest.mark.parametrize("part", ["model", "settings", "result", "certificate"])
def test_header_with_a_part_of_another_kind(saved, part):
    assert "damaged" in refusal(rewrite(saved, header=lambda h: h.update({part: "x"})))


def test_a_flipped_bit_is_noticed_or_harmless(saved, plans):
    sound, rng = saved.read_bytes(), np.random.default_rng(0)
    for _ in range(300):
        content = bytearray(sound)
        content[rng.integers(len(content))] ^= 1 << rng.integers(8)
        saved.write_bytes(content)
        try:
            again = mw.load(saved)
        except mw.PlanFileError:
            continue
        assert_same_bits(plans, again)


# ---- writing that fails -----------------------------------------------------------------------


@pytest.mark.parametrize("write", ["save", "draw"])
@pytest.mark.parametrize(
    ("place", "message"),
    [("none/plans.png", "there is no folder"), ("folder.png", "it is a folder"), ("file/x.png", "there is no folder")],
)
def test_impossible_places(tmp_path, plans, write, place, message):
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(mw.OutputError, match=f"cannot write .*{place}: {message}"):
        getattr(plans, write)(tmp_path / place)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder.png"]


def no_space(*_: Any, **__: Any) -> Any:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("before", [None, b"what was there before"])
@pytest.mark.parametrize("step", ["os.replace", "os.chmod"])
def test_nothing_is_left_behind_when_saving_fails(tmp_path, plans, monkeypatch, step, before):
    path = tmp_path / "plans.mw"
    if before is not None:
        path.write_bytes(before)
    monkeypatch.setattr(step, no_space)
    with pytest.raises(mw.OutputError, match=r"cannot write .*plans\.mw: No space left on device"):
        plans.save(path)
    assert [file.read_bytes() for file in tmp_path.iterdir()] == ([] if before is None else [before])


@pytest.mark.parametrize("before", [None, b"what was there before"])
@pytest.mark.parametrize("step", ["os.replace", "os.chmod"])
def test_nothing_is_left_behind_when_drawing_fails(tmp_path, plans, monkeypatch, step, before):
    path = tmp_path / "plans.png"
    if before is not None:
        path.write_bytes(before)
    monkeypatch.setattr(step, no_space)
    with pytest.raises(mw.OutputError, match=r"cannot write .*plans\.png: No space left on device"):
        plans.draw(path)
    assert [file.read_bytes() for file in tmp_path.iterdir()] == ([] if before is None else [before])


# ---- pictures ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("suffix", "begin"), [(".png", b"\x89PNG"), (".PNG", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")]
)
def test_pictures_are_written(tmp_path, plans, suffix, begin):
    path = plans.draw(tmp_path / f"plans{suffix}")
    assert path == tmp_path / f"plans{suffix}"
    assert path.read_bytes().startswith(begin)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["plans.gif", "plans", "plans.mw", ".png"])
def test_other_pictures_are_refused(tmp_path, plans, name):
    with pytest.raises(mw.OutputError, match=r"a picture ends in one of \.pdf, \.png, \.svg"):
        plans.draw(tmp_path / name)
    assert os.listdir(tmp_path) == []


def drawn(plans: mw.PlanSet, monkeypatch: pytest.MonkeyPatch, path: Path) -> Figure:
    """The figure that `draw` writes."""
    figures: list[Figure] = []
    savefig = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda self, *a, **k: (figures.append(self), savefig(self, *a, **k))[1])
    plans.draw(path)
    return figures[-1]


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_one_panel_a_plan(tmp_path, monkeypatch, k):
    plans = small_plans(k)
    figure = drawn(plans, monkeypatch, tmp_path / "plans.png")
    panels = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title() for axes in panels] == [
        f"plan {i}: reward {reward:.3f}" for i, reward in enumerate(plans.rewards, start=1)
    ]
    assert figure.get_suptitle().startswith(f"small\n{k} plans, mean reward {plans.rewards.mean():.3f}")


def test_a_map_shows_walls_start_goal_and_time_spent():
    walking = SMALL.labels["wall"] | SMALL.labels["start"] | SMALL.labels["goal"]
    occupancy = np.zeros(SMALL.n_choices)
    occupancy[SMALL.first_choice[5]] = 0.75  # below the start
    occupancy[SMALL.first_choice[6]] = 0.25
    panel = occupancy_maps(SMALL, occupancy[None], ["one"], "heading").axes[0]
    picture = np.asarray(panel.images[0].get_array())
    assert picture.shape == (3, 5, 3)
    assert picture[SMALL.layout.blocked] == pytest.approx(np.zeros((2, 3)))
    assert picture[0, 0] == pytest.approx(to_rgb("#d62728")), "the start is red"
    assert picture[2, 4] == pytest.approx(to_rgb("#7b2cbf")), "the goal is purple"
    brightness = picture.sum(axis=2)
    assert brightness[1, 0] < brightness[1, 1] < 3.0, "the more time, the darker"
    assert picture[1, 1, 2] > picture[1, 1, 0], "time spent is blue"
    elsewhere = ~walking.reshape(3, 5)
    elsewhere[1, :2] = False
    assert picture[elsewhere] == pytest.approx(1.0), "where nobody goes it is white"


def test_bars_for_a_model_without_layout():
    states = "abcdefghijklmnop"
    ring = mw.MDP.from_transitions([(s, "on", t, 1.0, 0.0) for s, t in zip(states, states[1:] + "a", strict=True)])
    plans = mw.plan(ring, 2, method=mw.FrankWolfe())
    figure = occupancy_maps(ring, plans.occupancies, ["one", "two"], "heading")
    assert len(figure.axes) == 2
    for panel in figure.axes:
        assert [bar.get_width() for bar in panel.patches] == pytest.approx([1 / 16] * 12), "the twelve busiest states"
        assert sorted(label.get_text() for label in panel.get_yticklabels()) == list(states[:12])


@pytest.mark.parametrize("name", ["$\\unknown$", "from $5 to $6", "<b>&"])
def test_names_are_plain_text(tmp_path, plans, name):
    dataclasses.replace(plans, mdp=dataclasses.replace(SMALL, name=name)).draw(tmp_path / "plans.png")
    chain = mw.MDP.from_transitions([(name, "on", "b", 1.0, 0.0), ("b", "on", name, 1.0, 1.0)])
    mw.plan(chain, 1, method=mw.FrankWolfe()).draw(tmp_path / "bars.png")
    assert all((tmp_path / picture).stat().st_size > 1000 for picture in ("plans.png", "bars.png"))
