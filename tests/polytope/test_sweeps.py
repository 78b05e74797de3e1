"""The oracle by sweeps against the exact one, against linear programs, and where it has to fall back."""

import numpy as np
import pytest
from test_feasible_set import best_by_linear_program, slow_climb

import manyways as mw
from manyways import MDP, Average, Discounted, Polytope
from manyways.kernels import sweeps as kernels
from manyways.model.occupancy import deterministic
from manyways.polytope import Answer, PolicyIteration, RenumberedSweeps, Sweeps, Vertex
from problems import KINDS, KNOWN, random_accessible_mdp, random_mdp
from shared import WORLDS

CRITERIA = [Average(), Discounted(0.95)]
MODELS_OF_A_KIND = 25  # times five kinds, two criteria and two numberings: 500 models

each_criterion = pytest.mark.parametrize("criterion", CRITERIA, ids=str)
each_numbering = pytest.mark.parametrize("oracle", [Sweeps, RenumberedSweeps])


def assert_as_good(polytope: Polytope, c: np.ndarray, found: Vertex, value: float, proof: float = 2e-9) -> None:
    """A vertex of the given value, which proves that there is no better one, with the policy behind it."""
    scale = np.abs(c).max()
    assert found.value == pytest.approx(value, abs=1e-8 * scale)
    assert found.value == pytest.approx(c @ found.occupancy, abs=1e-12 * scale)
    assert found.bound >= found.value
    assert found.bound >= value - 1e-12 * scale
    assert found.bound - found.value <= proof * scale + 1e-15
    assert polytope.residual(found.occupancy) <= 1e-9
    realised = polytope.criterion.occupancy(polytope.mdp, deterministic(polytope.mdp, found.choices))
    np.testing.assert_allclose(realised, found.occupancy, atol=1e-8)


def both(mdp: MDP, criterion=None, oracle=Sweeps) -> tuple[Polytope, Polytope]:
    return Polytope(mdp, criterion, oracle=oracle), Polytope(mdp, criterion, oracle=PolicyIteration)


def assert_agree(swept: Polytope, exact: Polytope, c: np.ndarray, warm: Vertex | None = None) -> Vertex:
    found = swept.best(c, warm)
    assert_as_good(swept, c, found, exact.best(c).value)
    return found


@pytest.fixture
def fallbacks(monkeypatch) -> list[float]:
    """One entry for each time that the exact method had to take over."""
    seen: list[float] = []
    exactly = Sweeps._exactly

    def noted(self, c, at):
        found = exactly(self, c, at)
        seen.append(found.value)
        return found

    monkeypatch.setattr(Sweeps, "_exactly", noted)
    return seen


# ---- the shared worlds ------------------------------------------------------------------------


@each_criterion
@pytest.mark.parametrize("path", WORLDS, ids=lambda path: path.stem)
def test_a_chain_of_costs_on_the_shared_worlds(path, criterion):
    """Each answer is the next one's warm start, as in an ascent: small changes, large ones, other scales."""
    mdp = mw.read(path)
    swept, exact = both(mdp, criterion)
    rng = np.random.default_rng(0)
    typical = np.abs(mdp.reward).mean()
    costs = [
        mdp.reward,
        mdp.reward + 0.1 * typical * rng.normal(size=mdp.n_choices),
        mdp.reward + typical * rng.normal(size=mdp.n_choices),
        1e-4 * (mdp.reward + 0.5 * typical * rng.normal(size=mdp.n_choices)),
        mdp.reward - 5.0 * typical * (rng.random(mdp.n_choices) < 0.1),
    ]
    warm = None
    for c in costs:
        warm = assert_agree(swept, exact, c, warm)


def test_there_are_twenty_shared_worlds_of_which_each_is_swept_by_default():
    assert len(WORLDS) == 20
    assert isinstance(Polytope(mw.read(WORLDS[0]))._oracle, Sweeps)


# ---- random models ----------------------------------------------------------------------------


@each_criterion
@each_numbering
@pytest.mark.parametrize("kind", KINDS)
def test_random_models_cold_and_warm(kind, oracle, criterion):
    rng = np.random.default_rng(KINDS.index(kind))
    make = random_accessible_mdp if isinstance(criterion, Average) else random_mdp
    for _ in range(MODELS_OF_A_KIND):
        mdp = make(rng, max_states=6, kind=kind)
        swept, exact = both(mdp, criterion, oracle)
        c, other, odd = rng.normal(size=(3, mdp.n_choices))
        cold = assert_agree(swept, exact, c)
        for warm in (cold, swept.best(other), swept.best(-c), exact.best(other)):
            assert_agree(swept, exact, c, warm)
        for c in (1e6 * odd, 1e-6 * odd, np.round(odd), np.full(mdp.n_choices, -3.0), np.zeros(mdp.n_choices)):
            assert_agree(swept, exact, c, cold)


@each_criterion
@pytest.mark.parametrize("name", KNOWN)
def test_best_reward_in_closed_form(name, criterion):
    problem = KNOWN[name]
    polytope = Polytope(problem.mdp, criterion, oracle=Sweeps)
    assert_as_good(polytope, problem.mdp.reward, polytope.best(problem.mdp.reward), problem.best(criterion))


# ---- where it could go wrong ------------------------------------------------------------------


@each_criterion
@pytest.mark.parametrize("cell", [0, 25, 180])
def test_standing_still_can_be_best(cell, criterion):
    """Once 'stop' pays more in one cell than any round trip earns, that is where to stay."""
    mdp = mw.four_rooms(0)
    swept, exact = both(mdp, criterion)
    moving = assert_agree(swept, exact, mdp.reward)
    stop = next(x for x in range(mdp.first_choice[cell], mdp.first_choice[cell + 1]) if mdp.action_name(x) == "stop")
    rested = None
    for raised in (1.01 * moving.value, 2 * moving.value, 100 * moving.value):
        c = mdp.reward.copy()
        c[stop] = raised
        for warm in (None, moving, rested):
            found = assert_agree(swept, exact, c, warm)
            if isinstance(criterion, Average):
                assert found.value == pytest.approx(raised, rel=1e-12)
                assert found.occupancy[stop] == 1.0
        rested = found
    again = assert_agree(swept, exact, mdp.reward, rested)  # and up again, and on
    assert again.value == pytest.approx(moving.value, rel=1e-9)


@each_criterion
@pytest.mark.parametrize("worth", [0.999999, 1 - 1e-9, 1.0, 1 + 1e-9, 1.000001])
def test_standing_still_and_the_round_trip_are_about_as_good(worth, criterion):
    mdp = mw.nine_rooms(3)
    swept, exact = both(mdp, criterion)
    moving = swept.best(mdp.reward)
    c = mdp.reward.copy()
    c[mdp.first_choice[31] - 1] = worth * moving.value  # the last action of a cell is 'stop'
    assert mdp.action_name(int(mdp.first_choice[31]) - 1) == "stop"
    for warm in (None, moving):
        assert_agree(swept, exact, c, warm)


@each_criterion
@pytest.mark.parametrize("size", [4, 12])
def test_a_grid_without_chance(size, criterion):
    """All policies are periodic or absorbing, and most have several recurrent classes."""
    walls = np.zeros((size, size), bool)
    walls[1:-1, size // 2] = True
    mdp = mw.grid_world(walls, (0, 0), (size - 1, size - 1), correct_transition=1.0)
    swept, exact = both(mdp, criterion)
    rng = np.random.default_rng(size)
    warm = None
    for noise in (0.0, 0.0, 0.1, 1.0, 10.0, 100.0, 0.1):
        c = mdp.reward + noise * rng.normal(size=mdp.n_choices)
        assert_agree(swept, exact, c)
        warm = assert_agree(swept, exact, c, warm)


PAY = ((0.2, 0.1), (1.1, 0.9))
HURRY = ((1.0, 3.0), (1.0, 2.0))


def two_wells(crossing: float, cells: int = 20) -> MDP:
    """Two rings of cells. In either, one walks about and crosses to the other with a very small chance, whatever
    the cell: at leisure with `crossing`, in a hurry with a multiple of it, which costs something."""
    rows = []
    for well in range(2):
        for cell in range(cells):
            for action in range(2):
                across = crossing * HURRY[well][action]
                ring = [(cell + 1) % cells, (cell - 1) % cells]
                chance = [(f"{well} {c}", (1 - across) / 2) for c in ring]
                chance += [(f"{1 - well} {c}", across / cells) for c in range(cells)]
                here, name = f"{well} {cell}", ("leisure", "hurry")[action]
                rows += [(here, name, to, p, PAY[well][action]) for to, p in chance]
    return MDP.from_transitions(rows, name="two wells")


def best_of_two_wells() -> float:
    """The wells are one state each; time splits as the chances of crossing back and over, whatever their scale."""
    gains = []
    for a in range(2):
        for b in range(2):
            over, back = HURRY[0][a], HURRY[1][b]
            gains.append((back * PAY[0][a] + over * PAY[1][b]) / (over + back))
    return max(gains)


@pytest.mark.parametrize("crossing", [1e-3, 1e-6, 1e-9])
def test_two_wells_that_hardly_mix(crossing, fallbacks):
    """The values differ by 1e8 between the wells, so that a proof to more than seven digits is not to be had."""
    mdp = two_wells(crossing)
    swept, exact = both(mdp)
    hurry = (np.arange(mdp.n_choices) % 2 == 1).astype(float)
    proof = 2e-9 + 1e-15 / crossing
    warm = None
    for c, best in ((mdp.reward, best_of_two_wells()), (hurry, 1.0), (mdp.reward, best_of_two_wells())):
        for start in (None, warm, exact.best(mdp.reward - 3 * hurry)):
            warm = swept.best(c, start)
            assert_as_good(swept, c, warm, best, proof=proof)
    assert best_of_two_wells() == pytest.approx(0.85)
    if crossing == 1e-9:
        assert fallbacks


def test_a_slow_climb():
    mdp = slow_climb()
    swept, exact = both(mdp)
    assert assert_agree(swept, exact, mdp.reward).value == pytest.approx(1e-6, rel=1e-6)


# ---- larger -----------------------------------------------------------------------------------


@each_criterion
def test_a_large_room_world_against_a_linear_program(criterion, fallbacks):
    mdp = mw.room_world(60, 4, 1)
    swept = Polytope(mdp, criterion)
    assert isinstance(swept._oracle, RenumberedSweeps)
    first = swept.best(mdp.reward)
    assert_as_good(swept, mdp.reward, first, first.value)
    c = mdp.reward + 2.0 * np.random.default_rng(0).normal(size=mdp.n_choices)
    expected = Polytope(mdp, criterion, oracle=PolicyIteration).best(c).value
    assert expected == pytest.approx(best_by_linear_program(mdp, criterion, c, tight=True), abs=1e-9 * np.abs(c).max())
    for warm in (None, first):
        assert_as_good(swept, c, swept.best(c, warm), expected)
    assert fallbacks == []


@each_criterion
@each_numbering
def test_where_one_starts_does_not_matter(oracle, criterion):
    mdp = mw.nine_rooms(7)
    polytope = Polytope(mdp, criterion, oracle=oracle)
    rng = np.random.default_rng(5)
    costs = [mdp.reward, -mdp.reward, *(100 * rng.normal(size=(3, mdp.n_choices)))]
    vertices = [polytope.best(c) for c in costs]
    for c, cold in zip(costs, vertices, strict=True):
        for warm in vertices:
            again = polytope.best(c, warm)
            assert_as_good(polytope, c, again, cold.value)


def test_a_warm_start_is_not_changed_by_its_use():
    mdp = mw.nine_rooms(7)
    polytope = Polytope(mdp, oracle=Sweeps)
    warm = polytope.best(mdp.reward)
    before = warm.occupancy.copy(), warm.choices.copy(), warm.memory.h.copy(), warm.memory.g
    c = mdp.reward + np.random.default_rng(1).normal(size=mdp.n_choices)
    first, again = polytope.best(c, warm), polytope.best(c, warm)
    np.testing.assert_array_equal(first.occupancy, again.occupancy)
    for kept, now in zip(before, (warm.occupancy, warm.choices, warm.memory.h, warm.memory.g), strict=True):
        np.testing.assert_array_equal(kept, now)


# ---- the helper can fail ----------------------------------------------------------------------


def test_a_worse_or_unproved_or_unrealised_answer_is_noticed():
    problem = KNOWN["losses"]
    polytope, c = Polytope(problem.mdp, oracle=Sweeps), problem.mdp.reward
    good = polytope.best(c)
    assert_as_good(polytope, c, good, -1.25)
    staying = np.array([0, 2])
    wrong = [
        Answer(problem.long_run, good.choices, value=float(c @ problem.long_run), bound=good.bound),
        Answer(good.occupancy, good.choices, value=good.value, bound=good.value + 1e-7),
        Answer(good.occupancy, good.choices, value=good.value, bound=good.value - 1e-7),
        Answer(good.occupancy, staying, value=good.value, bound=good.bound),
        Answer(good.occupancy + 1e-8, good.choices, value=good.value, bound=good.bound),
    ]
    for vertex in wrong:
        with pytest.raises(AssertionError):
            assert_as_good(polytope, c, vertex, -1.25)


# ---- predictions ------------------------------------------------------------------------------


@each_criterion
def test_no_occupancy_is_negative(criterion):
    """Mass is counted before it arrives, and its negative follows: what is left must not be less than nothing."""
    rng = np.random.default_rng(0)
    polytope = Polytope(mw.read("rooms-60:0"), criterion)
    found = polytope.optimum
    for size in (0.01, 0.1, 1.0, 10.0):
        found = polytope.best(polytope.mdp.reward + rng.normal(size=polytope.size) * size, found)
        assert found.occupancy.min() >= 0
        assert polytope.residual(found.occupancy) <= 1e-9


@pytest.mark.parametrize("chance", [0.5, 0.9, 0.99])
def test_predictions_that_mislead(chance):
    """A walk on a line that mostly moves away from the reference: no likely successor changes as its neighbours do."""
    n = 200
    rows = [(0, "go", 1, 1.0, 0.0)]
    for s in range(1, n):
        rows += [(s, "walk", s - 1, 1 - chance, 0.0), (s, "walk", min(s + 1, n - 1), chance, float(s == n - 1))]
        rows.append((s, "back", s - 1, 1.0, 0.1))
    swept, exact = both(MDP.from_transitions(rows))
    rng = np.random.default_rng(1)
    for _ in range(5):
        assert_agree(swept, exact, swept.mdp.reward + 0.01 * rng.normal(size=swept.size))


@pytest.mark.parametrize("seed", range(8))
def test_an_answer_is_well_proved_if_its_gap_is_small_against_the_mean_and_the_median(seed):
    """The compiled check counts; here the median is taken. Costs of zero, which some choices have, do not count."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    c = rng.exponential(size=n) * 10.0 ** rng.integers(-6, 6, n) * rng.integers(0, 2, n)
    visits = rng.dirichlet(np.ones(n))
    sizes = np.sort(c[c > 0])
    wanted = [float(visits @ c), *sizes[len(sizes) // 2 : len(sizes) // 2 + 1]]
    least = min((size for size in wanted if size > 0), default=0.0)
    for gap in (0.0, 0.99 * 1e-6 * least, 1.01 * 1e-6 * least + 1e-300):
        assert kernels.well_proved(c, np.arange(n), visits, gap, 1e-6) == (gap <= 1e-6 * least)
