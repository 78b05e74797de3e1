"""The paper's comparison of its two algorithms, on the worlds that its authors' program was run on."""

import json

import numpy as np
import pytest

import manyways as mw
from manyways import FrankWolfe, Polytope, ProjectedGradient
from manyways.formats.text_maps import world_from_rows
from manyways.methods import Watch
from shared import WORLDS, paper_objective

FOUR_ROOMS = [path for path in WORLDS if path.stem.startswith("four")]
K, TRADEOFF, SEEDS = 2, 8.0, 5


def test_frank_wolfe_does_as_well_as_the_authors_program():
    """Reward, diversity and objective of both, world by world; their means are close."""
    table = []
    for path in FOUR_ROOMS:
        mdp = mw.read(path)
        polytope, objective = Polytope(mdp), paper_objective(mdp, TRADEOFF)
        points = [FrankWolfe().run(polytope, objective, K, seed, Watch()).point for seed in range(SEEDS)]
        found = [((x @ mdp.reward).mean(), objective.distances(x)[0, 1], objective.value(x)) for x in points]
        theirs = json.loads(path.read_text())["authors_frank_wolfe"]
        table.append(
            [*np.mean(found, axis=0), *(theirs[key] for key in ("reward_per_policy", "diversity", "objective"))]
        )
    mean = np.mean(table, axis=0)
    print("\nFrankWolfe, k = 2, tradeoff 8, mean of five seeds | the authors' program, one run")
    heads = f"{'reward':>8} {'diversity':>9} {'objective':>9}"
    print(f"{'world':16} {heads} | {heads}")
    for name, row in [*zip([path.stem for path in FOUR_ROOMS], table, strict=True), ("mean", mean)]:
        print("{:16} {:8.3f} {:9.3f} {:9.3f} | {:8.3f} {:9.3f} {:9.3f}".format(name, *row))
    assert len(table) == 10
    assert mean[5] == pytest.approx(15.79, abs=0.005)
    assert abs(mean[2] - mean[5]) <= 0.35


@pytest.mark.parametrize("path", FOUR_ROOMS, ids=lambda path: path.stem)
def test_projected_gradient_with_an_exact_projection_ends_feasible(path):
    mdp = mw.read(path)
    polytope, objective = Polytope(mdp), paper_objective(mdp, TRADEOFF)
    ascent = ProjectedGradient().run(polytope, objective, K, 0, Watch())
    assert max(polytope.residual(x) for x in ascent.point) <= 1e-8
    assert objective.value(ascent.point) > ascent.trace.objective[0]


# ---- the paper's inexact projection -----------------------------------------------------------


def little_world() -> mw.MDP:
    return world_from_rows(["S...", "....", ".#..", "...G"], "little world")


def test_few_iterations_of_slsqp_do_not_reach_the_nearest_point():
    """They start feasible and the constraints are linear, so they stay feasible; what is lost is nearness."""
    polytope = Polytope(little_world())
    off = {}
    for iterations in (1, 3, 10):
        rng = np.random.default_rng(0)
        off[iterations] = 0.0
        for _ in range(5):
            x = polytope.sample(rng)
            y = x + 0.1 * rng.normal(size=polytope.size)
            exact, rough = polytope.project(y), polytope.project_roughly(y, x, iterations)
            assert polytope.residual(rough) <= 1e-8
            assert np.linalg.norm(rough - y) >= np.linalg.norm(exact - y) - 1e-9
            off[iterations] = max(off[iterations], np.abs(rough - exact).max())
    print(f"\nlargest error after 1, 3 and 10 iterations of SLSQP: {off}")
    assert off[1] > 1e-2
    assert off[1] > off[3] > off[10] > 1e-6


def test_projected_gradient_with_ten_iterations_of_slsqp_ends_elsewhere():
    """Feasible, but not where the exact projection leads; which of the two ends higher depends on the start."""
    mdp = little_world()
    polytope, objective = Polytope(mdp), paper_objective(mdp, TRADEOFF)
    for seed in range(3):
        exact, rough = (
            ProjectedGradient(rough_iterations=limit).run(polytope, objective, K, seed, Watch()) for limit in (None, 10)
        )
        print(f"seed {seed}: exact {objective.value(exact.point):.4f}, rough {objective.value(rough.point):.4f}")
        assert max(polytope.residual(x) for x in rough.point) <= 1e-8
        assert exact.trace.objective[0] == rough.trace.objective[0]
        assert np.abs(exact.point - rough.point).max() > 1e-5
