"""Every number that the gallery's pages say in a sentence is computed again, from the model and the policies (`truth`).

A sentence with a number in it has one of the forms below; a new form of sentence fails here until it is checked, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from truth import Truth, state_of

from manyways import ranges
from manyways.gallery import EXAMPLES, Example, example_file
from manyways.model.regions import find_regions
from manyways.planning import plan
from manyways.polytope import Answer
from manyways.report import suits, view_of
from manyways.serving import _drawn, served
from manyways.types import Bools, Floats
from problems import jsd

PERCENT = r"(?:under 0\.1|over 99\.9|\d[\d,]*(?:\.\d+)?) %"
NUMBER = r"-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?"
RANK = r"(?:, the (?P<rank>most|least) of all plans)?"
PLANS = r"plans? \d+(?:, \d+)*(?: and \d+(?: others)?)?"
OTHERS = (
    rf"(?:, like (?P<like>{PLANS}))?; (?P<who>the others|the rest|{PLANS}) "
    rf"(?:(?P<mean>{PERCENT})(?: on average)?|(?P<never>(?:is|are) never there|never do(?:es)?))"
)
NEEDS = {"gym:": "gymnasium", ".prism": "stormpy"}
COUNTS = ["One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve"]
MINUS = "−"
DIRECTIONS = ("north", "south", "east", "west", "up", "down", "left", "right")


# ---- the pages --------------------------------------------------------------------------------------


class Page:
    """A page and what is true of its plans."""

    def __init__(self, example: Example) -> None:
        place, question, settings = example.source.partition("?")
        source = example.source if ":" in place else f"{example_file(place)}{question}{settings}"
        plans = plan(source, **example.settings)
        self.answers: dict[str, list[Answer]] = {}
        with pytest.MonkeyPatch.context() as patch:
            # What random people gain has a test of its own, and takes most of the time.
            patch.setattr(suits, "_gain", lambda _: None)
            patch.setattr(ranges, "_range", self._recorded(ranges._range))
            self.view = view_of(plans)
        self.settings, self.truth = example.settings, Truth(plans)
        self.mdp, self.k = plans.mdp, plans.k

    def _recorded(self, range_of: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, and the answers that it gets are kept by name."""

        def recorded(polytope: Any, name: str, *rest: Any) -> Any:
            kept = self.answers.setdefault(name, [])

            def best(c: Floats) -> Answer:
                kept.append(polytope.best(c))
                return kept[-1]

            return range_of(SimpleNamespace(best=best), name, *rest)

        return recorded

    @property
    def others(self) -> list[list[int]]:
        return [[j for j in range(self.k) if j != i] for i in range(self.k)]


@cache
def page_of(name: str) -> Page:
    return Page(next(example for example in EXAMPLES if example.name == name))


@pytest.fixture(scope="module", params=EXAMPLES, ids=lambda example: example.name)
def page(request) -> Page:
    for part, package in NEEDS.items():
        if part in request.param.source:
            pytest.importorskip(package)
    return page_of(request.param.name)


# ---- numbers as they are shown ------------------------------------------------------------------------


def is_percent(text: str, share: float) -> bool:
    """Whether a share is shown so: one decimal below 10 and above 99 %, none between."""
    if text == "under 0.1 %":
        return 0 < share < 1e-3
    if text == "over 99.9 %":
        return 1 - 1e-3 < share < 1
    points = float(text.removesuffix(" %").replace(",", ""))
    if points in (0, 100):
        return abs(100 * share - points) < 1e-6
    digit = 0.1 if points < 10 or 99 <= points < 100 else 1
    down = 1 if points == 99 else digit  # 98.7 is shown as 99, and 99.3 as 99.3
    return -0.5001 * down - 1e-7 <= 100 * share - points <= 0.5001 * digit + 1e-7


def is_fine(text: str, share: float) -> bool:
    """Whether a share is shown so, as in the tables: with one decimal."""
    if not re.match(r"\d", text) or share in (0, 1):
        return is_percent(text, share)
    return abs(float(text.removesuffix(" %")) - 100 * share) < 0.0501


def is_steps(text: str, steps: float) -> bool:
    shown = float(text.replace(",", ""))
    return abs(shown - steps) <= (0.05001 if shown < 100 else 0.5001)


def is_number(text: str, value: float) -> bool:
    """Whether a value is shown so: three significant digits, all of those before the point."""
    shown = float(text.replace(",", ""))
    if shown == 0:
        return abs(value) < 1e-9
    digit = min(10.0 ** (np.floor(np.log10(abs(shown)) + 1e-12) - 2), 1.0)
    return abs(shown - value) <= 0.5001 * digit


def is_figure(text: str, value: float) -> bool:
    """Whether a value is shown so, to all decimals."""
    decimals = len(text.partition(".")[2])
    return abs(float(text.replace(",", "")) - value) <= 0.5001 * 10.0**-decimals


def is_floor(text: str, value: float) -> bool:
    """Whether a value is at least what is shown, and less than one more in the last of three digits."""
    shown = float(text)
    return shown - 1e-9 <= value <= shown + 1.0001 * 10.0 ** (np.floor(np.log10(abs(shown))) - 2)


# ---- the forms ----------------------------------------------------------------------------------------

Check = Callable[[Page, int, dict[str, Any]], bool]
FORMS: dict[str, list[tuple[re.Pattern[str], Check]]] = {}


def form(kind: str, pattern: str) -> Callable[[Check], Check]:
    def add(check: Check) -> Check:
        FORMS.setdefault(kind, []).append((re.compile(pattern), check))
        return check

    return add


def check(page: Page, kind: str, text: str, i: int = -1) -> None:
    """A text about plan i must be true, if it has one of the forms; it must have one if there is a digit in it."""
    found = [(match, true) for pattern, true in FORMS[kind] if (match := pattern.fullmatch(text))]
    assert found or not re.search(r"\d", text), f"no form for: {text}"
    for match, true in found:
        assert true(page, i, match.groupdict()), f"not true of plan {i + 1}: {text}"


def rank_holds(i: int, values: Floats, rank: str | None) -> bool:
    if rank is None:
        return True
    rest = np.delete(values, i)
    return bool(values[i] > rest.max() if rank == "most" else values[i] < rest.min())


def numbers_in(text: str) -> list[int]:
    """Plans counted from 0: those named."""
    return [int(number) - 1 for number in re.findall(r"\d+", text)]


def are_plans(text: str, which: list[int]) -> bool:
    """Whether "plans 1, 2 and 4" or "plans 1, 2, 3, 4, 5 and 10 others" are these plans."""
    more = re.search(r" and (\d+) others", text)
    named = numbers_in(text[: more.start()] if more else text)
    expected = which[: len(which) - int(more[1])] if more else which
    return named == expected and text.startswith("plans " if len(which) > 1 else "plan ")


# ---- above the plans ------------------------------------------------------------------------------------


@form(
    "headline", rf"(?P<count>\w+) (?P<noun>way|plan)s( to the goal)?, each at least (?P<least>{NUMBER}) % of the best"
)
def _(page: Page, _i: int, said: dict[str, Any]) -> bool:
    share = 100 * float(page.truth.rewards.min()) / page.truth.best
    least = float(said["least"])
    return _counted(page, said) and least <= share < least + (1 if share < 99 else 0.1) + 1e-6


@form(
    "headline",
    rf"(?P<count>\w+) (?P<noun>way|plan)s( to the goal)?, each at most (?P<most>{NUMBER}) % worse than the best",
)
def _(page: Page, _i: int, said: dict[str, Any]) -> bool:
    lost, most = 100 * float(page.truth.lost.max()), float(said["most"])
    return _counted(page, said) and most - 10 ** (np.floor(np.log10(lost)) - 1) < lost <= most + 1e-9


@form("headline", r"(?P<count>\w+) (?P<noun>way|plan)s( to the goal)?, each as good as the best possible")
def _(page: Page, _i: int, said: dict[str, Any]) -> bool:
    return _counted(page, said) and float(page.truth.lost.max()) == 0


def _counted(page: Page, said: dict[str, Any]) -> bool:
    all_same = page.k > 1 and all(alike(page, i, j) for i, j in combinations(range(page.k), 2))
    count = str(page.k) if page.k > len(COUNTS) else COUNTS[page.k - 1]
    return said["count"] == count and said["noun"] == ("plan" if all_same else "way")


def same_rule(page: Page, i: int, j: int) -> bool:
    """Whether two rows of the table of rules, which is checked by itself, say the same of at least 95 % of the time."""
    rows = page.view["rules"]["rows"] if page.view["rules"] else None
    if rows is None or rows[i]["texts"] != rows[j]["texts"]:
        return False
    return all(
        row["exact"].startswith("over") or float(row["exact"].removesuffix(" %")) >= 95 for row in (rows[i], rows[j])
    )


def same_effect(page: Page, i: int, j: int) -> bool:
    """Whether two plans on a map spend their time on choices that lead to the same states with the same reward."""
    mdp = page.mdp
    if mdp.layout is None or page.k > 8 or mdp.n_states > 1000:
        return False
    place: dict[tuple, int] = {}
    effects = []
    for x, (row, reward) in enumerate(zip(mdp.transitions.toarray().round(9), mdp.reward.round(9), strict=True)):
        effects.append(place.setdefault((int(mdp.choice_state[x]), row.tobytes(), float(reward)), len(place)))
    p, q = (np.bincount(effects, page.truth.plans.occupancies[plan]) for plan in (i, j))
    return jsd(p, q) < 0.01


def alike(page: Page, i: int, j: int) -> bool:
    return page.truth.alike(i, j) or same_rule(page, i, j) or same_effect(page, i, j)


@form("difference", r"((?P<named>[Pp]lans .*); all other pairs|All of them) are really different\.")
def _(page: Page, _i: int, said: dict[str, Any]) -> bool:
    """Each two plans that are named together are alike, and no other two."""
    named = [numbers_in(part) for part in (said["named"] or "").split(";") if part]
    told = {pair for group in named for pair in combinations(group, 2)}
    return told == {pair for pair in combinations(range(page.k), 2) if alike(page, *pair)}


@form(
    "difference",
    r"Only (?P<named>plans .+) are really different; all other pairs are alike(, or near each other most of the way)?\.",
)
def _(page: Page, _i: int, said: dict[str, Any]) -> bool:
    told = {tuple(numbers_in(pair)) for pair in said["named"].split(", and ")}
    return told == {pair for pair in combinations(range(page.k), 2) if not alike(page, *pair)}


@form("difference", r"Of their (?P<pairs>[\d,]+) pairs, (?P<different>[\d,]+) are really different\.")
def _(page: Page, _i: int, said: dict[str, Any]) -> bool:
    pairs = list(combinations(range(page.k), 2))
    shown = [int(said[part].replace(",", "")) for part in ("pairs", "different")]
    return shown == [len(pairs), sum(not alike(page, *pair) for pair in pairs)]


@form("difference", r"They are alike and differ only in detail\.|All of them stay near each other most of the way\.")
def _(page: Page, _i: int, _said: dict[str, Any]) -> bool:
    return all(alike(page, *pair) for pair in combinations(range(page.k), 2))


@form(
    "guarantee",
    rf"Every plan earns at least (?P<floor>{NUMBER}) per (?P<unit>step|episode), within (?P<slack>{PERCENT}) of the best "
    r"possible( among plans whose episodes last at most (?P<longest>\d+) steps on average)?\.( Episodes that the environment cuts off after (?P<limit>\d+) steps count as if they went on\.)?",
)
def _(page: Page, _i: int, said: dict[str, Any]) -> bool:
    truth, slack = page.truth, page.settings["slack"]
    floor = truth.best - slack * abs(truth.best)
    limit = page.mdp.time_limit if truth.episodic else None
    return (
        is_percent(said["slack"], slack)
        and is_floor(said["floor"], floor)
        and float(truth.rewards.min()) >= floor - 1e-9
        and said["unit"] == ("episode" if truth.episodic else "step")
        and said["limit"] == (None if limit is None else str(limit))
        and said["longest"] in (None, str(page.mdp.time_limit))
    )


@form(
    "ways",
    rf"(?P<count>\w+) different ways were found\. A search for one more only found one like plan (?P<like>\d+); "
    rf"allow more than (?P<slack>{PERCENT}) for others\.",
)
def _(page: Page, _i: int, said: dict[str, Any]) -> bool:
    apart = page.truth.distances[np.triu_indices(page.k, 1)]
    return (
        ["One", "Two", "Three", "Four", "Five", "Six", "Seven"].index(said["count"]) + 1 == page.k < page.settings["k"]
        and is_percent(said["slack"], page.settings["slack"])
        and int(said["like"]) - 1 == page.truth.plans.like
        and bool((apart >= 0.1).all())
    )


PART = rf"{NUMBER}|over 99\.9"


@form("promise", rf"These plans earn (?P<low>{PART})( to (?P<high>{PART}))? % of what the very best plan earns\.")
def _(page: Page, _i: int, said: dict[str, Any]) -> bool:
    shares = 100 * page.truth.rewards / page.truth.best
    ends = (said["low"], shares.min()), (said["high"] or said["low"], shares.max())
    # Rounded down, and only the best is 100 %.
    return all(
        99.9 < share < 100 if shown == "over 99.9" else -1e-6 < share - float(shown) < (0.1 if "." in shown else 1)
        for shown, share in ends
    ) and all((shown == "100") == (share > 100 - 1e-6) for shown, share in ends)


@form(
    "promise",
    rf"These plans earn (?P<low>{NUMBER}) to (?P<high>{NUMBER}) per episode, where no plan can earn more than (?P<best>{NUMBER})\.",
)
def _(page: Page, _i: int, said: dict[str, Any]) -> bool:
    low, high = page.truth.rewards.min(), page.truth.rewards.max()
    return is_number(said["low"], low) and is_number(said["high"], high) and is_number(said["best"], page.truth.best)


@form("duplicates", r"(?P<named>Plans \d+ and \d+ are .+?)(; and (?P<more>\d+) more pairs?)?\.")
def _(page: Page, _i: int, said: dict[str, Any]) -> bool:
    pairs = [(i, j) for i, j in combinations(range(page.k), 2) if page.truth.distances[i, j] < 0.01]
    named = [
        (int(first) - 1, int(second) - 1)
        for first, second in re.findall(r"[Pp]lans (\d+) and (\d+) are nearly the same", said["named"])
    ]
    near = all(page.truth.near[i, j] < 0.2 for i, j in named)
    return near and named == pairs[: len(named)] and len(pairs) - len(named) == int(said["more"] or 0)


@form("strip", r"Each plan's reward against the best possible: (?P<plans>plan 1 .+)")
def _(page: Page, _i: int, said: dict[str, Any]) -> bool:
    texts = said["plans"].split(", ")
    return len(texts) == page.k and all(
        text.startswith(f"plan {i + 1} ") and loss_holds(page, i, text.removeprefix(f"plan {i + 1} "))
        for i, text in enumerate(texts)
    )


def loss_holds(page: Page, i: int, text: str) -> bool:
    lost = float(page.truth.lost[i])
    if text == "best possible":
        return lost == 0
    if text == "under 0.1 % less":
        return 0 < lost < 1e-3
    return text[0] == MINUS and is_fine(text[1:], lost)


# ---- chips, figures and titles ----------------------------------------------------------------------------


@form("chip", rf"(?P<text>best possible|under 0\.1 % less|{MINUS}{PERCENT})")
def _(page: Page, i: int, said: dict[str, Any]) -> bool:
    return loss_holds(page, i, said["text"])


@form("chip", rf"(?P<steps>{NUMBER}) steps?")
def _(page: Page, i: int, said: dict[str, Any]) -> bool:
    return abs(float(said["steps"].replace(",", "")) - float(page.truth.steps[i])) < 0.0501


@form("chip", rf"(?P<share>{PERCENT}) reach the goal(?:, (?P<in_time>{PERCENT}) within (?P<limit>\d+) steps)?")
def _(page: Page, i: int, said: dict[str, Any]) -> bool:
    truth, mdp = page.truth, page.mdp
    if (mdp.time_limit is None) != (said["limit"] is None):
        return False
    reached, at = 0.0, mdp.start
    for _ in range(mdp.time_limit or 0):  # one episode, step by step; what ends is not led back to the start
        step = at[truth.state] * truth.plans.policies[i]
        reached += float(step @ mdp.ends["goal"])
        at = step @ mdp.transitions - float(step @ sum(mdp.ends.values())) * mdp.start
    in_time = said["limit"] is None or (int(said["limit"]) == mdp.time_limit and is_fine(said["in_time"], reached))
    return in_time and is_fine(said["share"], float(truth.reaches[i]))


def figure_holds(page: Page, i: int, name: str, text: str) -> bool:
    truth = page.truth
    if text == "under 0.1 %":
        return name == "below optimum" and is_percent(text, float(truth.lost[i]))
    values = {"reward": truth.rewards, "below optimum": 100 * truth.lost}
    if name not in values:
        values |= {"steps to goal": truth.steps, "reaches goal": 100 * truth.reaches}
    return is_figure(text.removesuffix(" %"), float(values[name][i]))


def title_holds(page: Page, i: int, title: str) -> bool:
    """Each part of a title that has a number, and those that compare."""
    numbered = re.fullmatch(r"(.*) \((\d+)\)", title)
    if numbered:
        title, number = numbered.groups()
        if int(number) != i + 1:
            return False
    whole, _, qualifier = title.partition(" — ")
    equal = re.fullmatch(r"The same as plans? (.+)", whole)
    if equal:
        return all(np.allclose(page.truth.x[i], page.truth.x[int(j) - 1]) for j in re.findall(r"\d+", equal[1]))
    like = re.fullmatch(r"Like plan (\d+), (?:with small differences|(.* below the optimum)|but (.*))", whole)
    if like:
        own = like[2] is None or _worth(page, i, like[2])
        own = own and (like[3] is None or departs(page, i, like[3], [int(like[1]) - 1]))
        return own and int(like[1]) - 1 != i and page.truth.alike(i, int(like[1]) - 1)
    parts = [part for part in (whole, qualifier) if part]
    same = [j for j in page.others[i] if page.view["cards"][j]["title"].startswith(whole)]
    return all(_part_holds(page, i, part, same) for part in parts)


def _part_holds(page: Page, i: int, part: str, same: list[int]) -> bool:
    truth = page.truth
    if part.endswith("below the optimum"):
        return _worth(page, i, part)
    if part == "Optimal":
        return float(truth.lost[i]) == 0
    if part in ("shortest", "longest"):
        extreme = truth.steps.min() if part == "shortest" else truth.steps.max()
        return bool(truth.steps[i] == extreme)
    if part in ("shorter", "longer"):
        return all((truth.steps[i] < truth.steps[j]) == (part == "shorter") for j in same)
    if part.lower() in ("highest reward", "lowest reward"):
        return bool(truth.rewards[i] == (truth.rewards.max() if part.lower()[0] == "h" else truth.rewards.min()))
    if part in ("higher reward", "lower reward"):
        return all((truth.rewards[i] > truth.rewards[j]) == (part == "higher reward") for j in same)
    rest = same or page.others[i]
    if re.search(r" more often|^(more|less) time", part, re.IGNORECASE) and departs(page, i, part, rest):
        return True
    time = re.fullmatch(r"(Mostly|Often|More time) ((?:with|at) .+)", part)
    if time:
        own, mean = compared(i, truth.time[:, conditions(page, time[2])].sum(axis=1))
        return own > 0.5 if time[1] == "Mostly" else own >= 0.25 and own >= 2 * mean
    always = re.fullmatch(r"[Aa]lways (.+?)(?: where it can)?", part)
    if always:
        taken = action_of(page, always[1])
        several = [len(set(page.mdp.actions[truth.state == s])) > 1 for s in range(page.mdp.n_states)]
        there = np.isin(truth.state, truth.state[taken]) & np.array(several)[truth.state]
        return bool(truth.x[i, taken & there].sum() >= 0.95 * truth.x[i, there].sum())
    habit = re.fullmatch(r"(.+?)( only)? ((?:at|when) .+)", part)
    if habit and departs(page, i, part, rest):
        return True
    if habit and re.search(r"\d", part):
        mask, taken = conditions(page, habit[3]), action_of(page, habit[1])
        there = float(truth.x[i, taken & mask[truth.state]].sum())
        only = habit[2] is None or float(truth.x[i, taken].sum()) <= there / 0.95 + 1e-9
        return only and there >= 0.25 - 1e-9 and there >= 0.95 * float(truth.time[i, mask].sum())
    if not exceeds_all(page, i, part.lower(), same):
        return False
    beside = re.fullmatch(r"[Ff]urther ([\w-]+) (in the [\w-]+) than plan (\d+)", part)
    if beside:
        return truth.shift(i, int(beside[3]) - 1, done_in(page, beside[2])) == beside[1]
    assert not re.search(r"\d", part), f"no form for the title: {part}"
    return True


def exceeds_all(page: Page, i: int, part: str, same: list[int]) -> bool:
    """Of every plan with another title, and with a qualifier of every other plan: it spends clearly less time in one of the parts
    of the map that a title names. "By the north-east" may be one of nine parts or three of them."""
    if not re.fullmatch(r"(by|through) the (?!.*(room|passage)).+", part) or page.truth.rooms is not None:
        return True
    names = re.findall(r"(?:by|through|,|and) the ([\w-]+)|(?<=, )the ([\w-]+)", part)
    way = page.truth.time[:, page.truth.on_the_way].sum(axis=1)
    named = [first or second for first, second in names]
    masks = [
        [page.truth.sector(name)] + ([page.truth.side(name)] if len(named) == 1 and name != "middle" else [])
        for name in named
    ]
    shares = [[page.truth.time[:, mask].sum(axis=1) / way for mask in of_one] for of_one in masks]
    bare = page.view["cards"][i]["title"].lower().partition(" — ")[0]
    rest = [j for j in page.others[i] if part != bare or j not in same]
    rest = [j for j in rest if not page.truth.same_way(i, j) and not alike(page, i, j)] if part == bare else same
    return all(any(any(one[j] <= 0.8 * one[i] for one in of_one) for of_one in shares) for j in rest)


def departs(page: Page, i: int, words: str, others: list[int]) -> bool:
    """Whether a plan does what the words say and none of the others: "more time with x = 0", "orders at wear 2"."""
    x, state = page.truth.x, page.truth.state
    more = re.fullmatch(r"(?:(more|less) time|(.+?) more often)(?: ((?:at|with|when) .+))?", words, re.IGNORECASE)
    if more:
        taken = np.ones(len(state), bool) if more[1] else action_of(page, more[2])
        there = taken if more[3] is None else taken & conditions(page, more[3])[state]
        time = x[:, there].sum(axis=1) * (-1 if (more[1] or "").lower() == "less" else 1)
        return all(time[i] - time[j] >= 0.01 - 1e-9 for j in others)
    habit = re.fullmatch(r"(.+?)( only)? ((?:at|when) .+)", words)
    if habit is None:  # a part of the map
        return not re.search(r"\d", words)
    taken, there = action_of(page, habit[1]), conditions(page, habit[3])[state]
    time, whole, all_time = (x[:, rows].sum(axis=1) for rows in (taken & there, there, taken))
    does = (whole >= 0.02) & (time >= (0.95 * whole if habit[2] is None else 0.5 * whole))
    nearly = (whole >= 0.02) & (time >= 0.5 * whole)
    if habit[2] is not None:
        does &= all_time - time <= 0.05 * all_time
        nearly &= all_time - time < 0.1 * all_time
    return bool(does[i]) and not nearly[others].any()


def _worth(page: Page, i: int, text: str) -> bool:
    """ "24 % below the optimum", "and no plan can earn more", "-17 per episode where -13 is possible"."""
    truth = page.truth
    if text == "and no plan can earn more":
        return float(truth.lost[i]) <= 1e-6
    both = re.fullmatch(rf"({NUMBER}) per (?:step|episode) where ({NUMBER}) is possible", text)
    if both:
        return is_number(both[1], float(truth.rewards[i])) and is_number(both[2], truth.best)
    share = re.fullmatch(rf"({PERCENT}) below the optimum", text)
    return share is not None and is_fine(share[1], float(truth.lost[i]))


# ---- sentences on length, reward and risks --------------------------------------------------------------------


@form(
    "sentence",
    r"(?P<lead>(?:The|One of the|Its) .*?)rewards?(?P<of>( of the set| as all the others)?), (?P<worth>.+)\.",
)
def _(page: Page, i: int, said: dict[str, Any]) -> bool:
    rewards, lead = page.truth.rewards, said["lead"]
    shown = [card["figures"][0]["text"] for card in page.view["cards"]]
    end = int(np.argmin(rewards) if "lowest" in lead else np.argmax(rewards))
    if not _worth(page, i, said["worth"]):
        return False
    if lead == "The same ":
        return len(set(shown)) == 1
    return shown[i] == shown[end] and (shown.count(shown[i]) > 1) == lead.startswith("One")  # as the table shows them


@form(
    "sentence",
    rf"(?P<lead>The shortest|Among the shortest|As short as possible): (?P<steps>{NUMBER}) steps to the goal on average\.",
)
def _(page: Page, i: int, said: dict[str, Any]) -> bool:
    steps = page.truth.steps
    alone = np.count_nonzero(np.abs(steps - steps.min()) < 0.1) == 1
    least = bool(steps[i] == steps.min()) if alone else bool(steps[i] < steps.min() + 0.1)
    if said["lead"] == "As short as possible":
        return is_steps(said["steps"], steps[i]) and steps[i] <= page.truth.best_steps + 1e-6
    return is_steps(said["steps"], steps[i]) and least and (not alone or said["lead"] == "The shortest")


@form("sentence", rf"Takes (?P<steps>{NUMBER}) steps to the goal on average, as the others do\.")
def _(page: Page, _i: int, said: dict[str, Any]) -> bool:
    return all(is_steps(said["steps"], steps) for steps in page.truth.steps)


@form(
    "sentence",
    rf"(?:(?P<lead>The longest|Among the longest), )?(?:(?P<more>{PERCENT}) longer than|(?P<times>{NUMBER}) times as long as) "
    rf"the shortest \((?P<own>{NUMBER}) steps on average against (?P<least>{NUMBER})\)\.",
)
def _(page: Page, i: int, said: dict[str, Any]) -> bool:
    steps = page.truth.steps
    ratio = steps[i] / steps.min()
    true = is_percent(said["more"], ratio - 1) if said["more"] else is_number(said["times"], ratio)
    longest = said["lead"] is None or steps[i] > steps.max() - 0.1
    return true and bool(longest) and is_steps(said["own"], steps[i]) and is_steps(said["least"], steps.min())


@form("sentence", rf"Touches '(?P<label>.+)' on (?P<share>{PERCENT}) of its ways to the goal{RANK}\.")
def _(page: Page, i: int, said: dict[str, Any]) -> bool:
    chances = page.truth.passing(f"label:{said['label']}")
    return is_percent(said["share"], chances[i]) and rank_holds(i, chances, said["rank"])


@form(
    "sentence",
    rf"(?P<safest>Safest: )?(?P<share>{PERCENT}|never)(?: of its way is)? beside the cliff(?:, except.*)?{RANK}\.",
)
def _(page: Page, i: int, said: dict[str, Any]) -> bool:
    """The cliff is all but the ends of the last of 4 x 12 cells; start and goal are these ends."""
    names = [page.mdp.state_name(s) for s in range(page.mdp.n_states)]
    beside = np.array([re.fullmatch(r"r2c([1-9]|10)", name) is not None for name in names])
    way = np.array([name not in ("r3c0", "r3c11") for name in names])
    time = page.truth.time
    shares = time[:, beside].sum(axis=1) / time[:, way].sum(axis=1)
    if said["safest"] and not all(shares[i] < shares[j] for j in page.others[i]):
        return False
    right = shares[i] < 1e-9 if said["share"] == "never" else is_percent(said["share"], float(shares[i]))
    return right and rank_holds(i, shares, said["rank"])


@form(
    "sentence",
    r"Acts by the same rule as plans? (?P<plans>[\d, and]+)(?: in the long run)?; they differ (?:only|mainly) in the states they are in\.",
)
def _(page: Page, i: int, said: dict[str, Any]) -> bool:
    return numbers_in(said["plans"]) == [j for j in page.others[i] if same_rule(page, i, j)]


@form("sentence", rf"Reaches the goal in (?P<share>{PERCENT}) of its episodes{RANK}\.")
def _(page: Page, i: int, said: dict[str, Any]) -> bool:
    shares = page.truth.reaches
    return is_fine(said["share"], shares[i]) and rank_holds(i, shares, said["rank"])


# ---- sentences on ways ------------------------------------------------------------------------------------------


@form(
    "sentence",
    r"(?P<how>Goes|Usually goes|Its likeliest way goes) through (?P<rooms>.+): (?P<turns>.+?)(?P<walls>, (?:once|twice|\d+ times) through a wall instead of a door)?\.",
)
def _(page: Page, i: int, said: dict[str, Any]) -> bool:
    truth, route = page.truth, page.truth.route(i)
    if route is None:
        return False
    rooms, changes = route
    walls = sum(door < 0 for door, _, _ in changes)
    often = {0: None, 1: ", once through a wall instead of a door", 2: ", twice through a wall instead of a door"}
    least = min(truth.passing(f"room:{room}")[i] for room in rooms)
    least = min([least, *(truth.passing(f"door:{door}")[i] for door, _, _ in changes if door >= 0)])
    sure = "Its likeliest way goes" if least <= 0.5 else "Usually goes" if least < 1 - 1e-9 else "Goes"
    turns = ", ".join(turn for _, _, turn in changes)
    return (said["how"], said["turns"], said["walls"]) == (sure, turns, often[walls]) and _named_rooms(
        page, said["rooms"]
    ) == list(rooms[1:-1])


def _named_rooms(page: Page, text: str) -> list[int]:
    """ "the west, middle and south rooms" -> their numbers."""
    assert page.truth.rooms is not None
    names = re.split(r", | and ", re.sub(r"^the | rooms?$", "", text))
    return [page.truth.rooms.names.index(f"{name} room") + 1 for name in names]


@form("sentence", r"The only plan (?P<usually>that usually goes )?through (?P<what>.+)\.")
def _(page: Page, i: int, said: dict[str, Any]) -> bool:
    truth = page.truth
    doors = re.findall(r"the ([\w-]+) door of the ([\w-]+) room", said["what"])
    if doors:
        route = truth.route(i)
        assert truth.rooms is not None
        assert route is not None
        names = {(turn, truth.rooms.names[room - 1].removesuffix(" room")): door for door, room, turn in route[1]}
        places = [f"door:{names[pair]}" for pair in doors]
    elif truth.rooms is not None:
        places = [f"room:{room}" for room in _named_rooms(page, said["what"])]
    else:
        places = [f"region:{name.removeprefix('the ')}" for name in said["what"].split(" and ")]
    chances = np.stack([truth.passing(place) for place in places])
    others = np.delete(chances, i, axis=1)
    alone = bool((others < 1e-6).all())  # regions may be counted with up to 0.001 more, which only adds "usually"
    return bool((chances[:, i] > 0.5).all() and (others < 0.1).all() and (said["usually"] or alone))


@form(
    "sentence",
    r"Avoids the (?P<room>[\w-]+) room, which (?:(?P<some>\d+) of the (?P<of>\d+) others|(?P<all>all the others)) cross\.",
)
def _(page: Page, i: int, said: dict[str, Any]) -> bool:
    chances = page.truth.passing(f"room:{_named_rooms(page, said['room'])[0]}")
    crossing = int(np.count_nonzero(np.delete(chances, i) > 0.5))
    expected = page.k - 1 if said["all"] else int(said["some"])
    return bool(chances[i] < 0.02) and crossing == expected and said["of"] in (None, str(page.k - 1))


@form("sentence", r"Nearly the same as (?P<plans>plans? .+)\.")
def _(page: Page, i: int, said: dict[str, Any]) -> bool:
    truth = page.truth
    return are_plans(
        said["plans"], [j for j in page.others[i] if truth.distances[i, j] < 0.01 and truth.near[i, j] < 0.2]
    )


@form(
    "sentence",
    r"Takes the same doors as (?P<plans>plans? [\d, and]+?(?: others)?)(?P<detail>; they differ only in detail)?"
    r"(?:, but keeps further (?P<side>[\w-]+) in the (?P<room>[\w-]+) room(?: than plan (?P<than>\d+))?)?\.",
)
def _(page: Page, i: int, said: dict[str, Any]) -> bool:
    truth = page.truth
    assert truth.same_passages is not None
    routes = [truth.route(j) for j in range(page.k)]
    doors = [None if route is None else [door for door, _, _ in route[1]] for route in routes]
    same = [j for j in page.others[i] if doors[j] == doors[i] and truth.same_passages[i, j]]
    true = are_plans(said["plans"], same)
    if said["detail"]:
        true &= all(in_detail(page, i, j) for j in same)
    if said["side"]:
        nearest = min(same, key=lambda j: truth.distances[i, j])
        mask = truth.place(f"room:{_named_rooms(page, said['room'])[0]}")
        true &= said["than"] in (None, str(nearest + 1)) and truth.shift(i, nearest, mask) == said["side"]
    return bool(true)


@form(
    "sentence",
    r"Takes the same passages as (?P<plans>plans? [\d, and]+?|all the others)( \((?P<which>.+)\))?(?P<detail>; they differ only in detail)?\.",
)
def _(page: Page, i: int, said: dict[str, Any]) -> bool:
    truth = page.truth
    assert truth.same_passages is not None
    assert truth.regions is not None
    same = [j for j in page.others[i] if truth.same_passages[i, j] and truth.near[i, j] < 0.45]
    passing = {n: truth.passing(f"region:{n}") for n in truth.regions.names if "passage" in n}
    ends = {truth.regions.names[at] for at in truth.regions.of_state[(page.mdp.start > 0) | page.mdp.labels["goal"]]}
    taken = [f"the {n}" for n, chances in passing.items() if chances[i] > 0.5 >= chances.min() and n not in ends]
    detail = not said["detail"] or all(in_detail(page, i, j) for j in same)
    several = f"the {' and '.join(name[4:].removesuffix(' passage') for name in taken)} passages"
    which = said["which"] is None or said["which"] == (taken[0] if len(taken) == 1 else several)
    return detail and which and (len(same) == page.k - 1 if "all" in said["plans"] else are_plans(said["plans"], same))


def in_detail(page: Page, i: int, j: int) -> bool:
    """As good and as long, as shown, and in the same cells for 80 % of their time."""
    truth, cards = page.truth, page.view["cards"]
    worth = [card["figures"][1]["text"] for card in cards]
    shared = 1 - np.abs(truth.time[i] - truth.time[j]).sum() / 2
    steps = abs(truth.steps[i] - truth.steps[j]) <= 0.01 * max(truth.steps[i], truth.steps[j]) + 1e-9
    return bool(worth[i] == worth[j] and shared >= 0.8 - 1e-9 and steps)


@form(
    "sentence",
    r"Stays near (?P<plans>plans? [\d, and]+?|all the others) most of the way(?P<detail>; they differ only in detail)?\.",
)
def _(page: Page, i: int, said: dict[str, Any]) -> bool:
    truth = page.truth
    same = [j for j in page.others[i] if truth.same_way(i, j) and truth.distances[i, j] >= 0.01]
    if said["detail"] and not all(in_detail(page, i, j) for j in same):
        return False
    return len(same) == page.k - 1 if "all" in said["plans"] else are_plans(said["plans"], same)


@form("sentence", r"Most like plan (?P<other>\d+)(?P<rest>; they differ mainly .+|, but .+)\.")
def _(page: Page, i: int, said: dict[str, Any]) -> bool:
    """The distance is the least in the table of distances, and what is said of the two is true."""
    table, other = page.view["distances"], int(said["other"]) - 1
    if table is not None:
        row = [float(cell["text"]) for cell in table[i]]
        if any(row[j] <= row[other] for j in page.others[i] if j != other):
            return False
    least = min(page.truth.distances[i, j] for j in page.others[i])
    return bool(page.truth.distances[i, other] <= least + 1e-9) and differs(page, i, other, said["rest"])


def differs(page: Page, i: int, other: int, text: str) -> bool:
    again, truth = rf"plan {other + 1}", page.truth
    ways = re.fullmatch(
        rf", but (usually )?goes through (?P<own>.+), and {again} (?:through (?P<theirs>.+)|does not)", text
    )
    if ways:
        chances = [
            np.stack([truth.passing(place) for place in places_of(page, ways[name])])
            for name in ("own", "theirs")
            if ways[name]
        ]
        own = bool((chances[0][:, i] > 0.5).all() and (chances[0][:, other] <= 0.5).all())
        sure = ways[1] is not None or bool((chances[0][:, i] > 0.99).all())
        return (
            own
            and sure
            and all(bool((rest[:, other] > 0.5).all() and (rest[:, i] <= 0.5).all()) for rest in chances[1:])
        )
    acts = rf"(?:it )?takes '(?P<own>.+)' more often and {again} '(?P<theirs>.+)'"
    found = (
        re.fullmatch(
            rf"; they differ mainly (?P<where>in .+), where (?:it keeps further (?P<side>[\w-]+)|{acts})", text
        )
        or re.fullmatch(r", but keeps further (?P<side>[\w-]+) (?P<where>in .+)", text)
        or re.fullmatch(rf", but (?P<where>in .+?) {acts}", text)
    )
    if found is None:
        return bool(re.fullmatch(r", but (usually )?does not go through .+", text))
    room = re.fullmatch(r"in the ([\w-]+) room", found["where"])
    mask = truth.place(f"room:{_named_rooms(page, room[1])[0]}") if room else done_in(page, found["where"])
    if text.startswith(";") and divergence_in(page, i, other, mask) < 0.5 - 1e-9:
        return False
    if "further" in text:
        return truth.shift(i, other, mask) == found["side"]
    more = [shares_of_action(page, found[name], mask) for name in ("own", "theirs")]
    return bool(more[0][i] > more[0][other] and more[1][i] < more[1][other])


def places_of(page: Page, text: str) -> list[str]:
    """Rooms that doors separate, or rooms and passages found in the map, by the names that `Truth.passing` knows."""
    if page.truth.rooms is not None:
        return [f"room:{room}" for room in _named_rooms(page, text)]
    kind = "passage" if "passage" in text else "room"
    names = re.split(r", | and ", re.sub(rf"^the | {kind}s?$", "", text))
    return [f"region:{name.removeprefix('the ')} {kind}" for name in names]


def divergence_in(page: Page, i: int, j: int, mask: Bools) -> float:
    """The share of the Jensen-Shannon divergence of two plans that comes from some states."""
    p, q = page.truth.x[[i, j]]
    middle = (p + q) / 2
    parts = sum(
        0.5 * np.where(own > 0, own * np.log(np.maximum(own, 1e-300) / np.maximum(middle, 1e-300)), 0.0)
        for own in (p, q)
    )
    return float(parts[mask[page.truth.state]].sum() / parts.sum())


# ---- sentences on time ------------------------------------------------------------------------------------------


def compared(i: int, values: Floats) -> tuple[float, float]:
    """Of plan i, and on average of the others."""
    return float(values[i]), float(np.delete(values, i).mean())


def conditions(page: Page, text: str) -> Bools:
    """(S,) where "at wear 2 or more when parts are 0", "with x ≤ 1" or "wear 2, parts 1" holds."""
    mask = np.ones(page.mdp.n_states, bool)
    for part in re.split(r", | and | when ", re.sub(r"^(at|with|when) ", "", text)):
        mask &= _condition(page, part)
    return mask


def _condition(page: Page, text: str) -> Bools:
    signs = re.fullmatch(r"(?:(\d+) ≤ )?(\w+) (=|≤|≥) (\d+)", text)
    counted = re.fullmatch(r"(\d+(?: or \w+| to \d+)?) ([a-z ]+)", text)  # "2 or more parts"
    if counted:
        plural = [name for name in page.mdp.variables if counted[2] in (name, name.removesuffix("s"))]
        return _condition(page, f"{plural[0]} {counted[1]}")
    words = re.fullmatch(r"(.+?) (?:is |are )?(\d+)(?: (or more|or less|or fewer)| (?:to|or) (\d+))?", text)
    if signs:
        low, name, sign, bound = signs.groups()
        values = page.mdp.variables[name]
        found = {"=": values == int(bound), "≤": values <= int(bound), "≥": values >= int(bound)}[sign]
        return found if low is None else found & (values >= int(low))
    named = re.fullmatch(r"(\w+) (?:is )?(.+)", text)  # "season is dry", "season dry"
    if named and not words and named[1] in page.mdp.variables:
        return np.isin(page.mdp.variables[named[1]], re.split(r", | or ", named[2]))
    assert words, f"no such condition: {text}"
    name, first, way, last = words.groups()
    values = page.mdp.variables[name if name in page.mdp.variables else name.replace(" ", "_")]
    if way is not None:
        return values >= int(first) if way == "or more" else values <= int(first)
    return (values >= int(first)) & (values <= int(last or first))


def where(page: Page, text: str) -> tuple[Bools, bool]:
    """(S,) the states of a place, and whether it is a part of the way: "in the north", "on the east side", "in 'worn'"."""
    truth = page.truth
    for pattern, part in (
        (r"in the ([\w-]+)", truth.sector),
        (r"in the (\w+)ern third", truth.side),
        (r"in the (\w+-\w+), \w+ or \w+", truth.side),
        (r"along the (\w+ edge|cliff)", truth.edge),
    ):
        match = re.fullmatch(pattern, text)
        if match:
            return part(match[1]), True
    name = re.fullmatch(r"in (?:states labelled )?'(.+)'", text)
    if name is None:
        return conditions(page, text), False
    if name[1] in page.mdp.labels:
        return page.mdp.labels[name[1]], False
    return np.arange(page.mdp.n_states) == state_of(page.mdp, name[1]), False


def shares_in(page: Page, text: str) -> Floats:
    """(k,) the share of time, or of the way, that each plan spends in a place."""
    (mask, of_way), time = where(page, text), page.truth.time
    return time[:, mask].sum(axis=1) / (time[:, page.truth.on_the_way].sum(axis=1) if of_way else 1.0)


def done_in(page: Page, text: str) -> Bools:
    """(S,) the states of a place when it is said what is done there: what is done at the start counts."""
    mask, of_way = where(page, text)
    if not of_way:
        return mask
    name = re.fullmatch(r"in the ([\w-]+)", text)
    assert name
    return page.truth.sector(name[1], ~page.mdp.labels.get("goal", np.zeros(page.mdp.n_states, bool)))


def others_hold(page: Page, i: int, values: Floats, said: dict[str, Any]) -> bool:
    """Whether the plans named as doing the same are those within a third of the distance to the mean of all others, and what is
    said of the rest is true."""
    others = page.others[i]
    gap = abs(values[i] - values[others].mean())
    like = [j for j in others if abs(values[j] - values[i]) <= gap / 3]
    rest = [j for j in others if j not in like]
    if said.get("like") is not None and not are_plans(said["like"], like):
        return False
    if said["who"].startswith("plan"):
        if not like or not are_plans(said["who"], rest):
            return False
    elif said["who"] == "the others" and like:
        return False
    return is_percent(said["mean"], float(values[rest].mean())) if said["mean"] else bool(values[rest].max() < 1e-9)


WHERE = r"(?P<where>(?:in|on|along|at|with) .+?)"


@form(
    "sentence",
    rf"Spends (?:only )?(?P<own>{PERCENT}) of its (?:way|time) {WHERE}(?:{OTHERS}|{RANK})\.",
)
def _(page: Page, i: int, said: dict[str, Any]) -> bool:
    shares = shares_in(page, said["where"])
    rest = said["who"] is None or others_hold(page, i, shares, said)
    return is_percent(said["own"], float(shares[i])) and rest and rank_holds(i, shares, said["rank"])


@form(
    "sentence",
    rf"(?P<never>Spends none of its (?:way|time)|Hardly ever|Never visits|Is never|Is hardly ever) (?P<where>.+?)"
    rf"(?: in the long run)?, where (?P<who>the others|most others|{PLANS}) spends? (?P<mean>{PERCENT})(?: on average)?\.",
)
def _(page: Page, i: int, said: dict[str, Any]) -> bool:
    place = f"in {said['where']}" if said["never"] == "Never visits" else said["where"].removeprefix("in states ")
    shares = shares_in(page, place)
    own = float(shares[i])
    return others_hold(page, i, shares, said) and (0 < own < 0.005 if "ardly" in said["never"] else own < 1e-8)


# ---- sentences on actions -----------------------------------------------------------------------------------------


def shares_of_action(page: Page, name: str, mask: Bools | None = None) -> Floats:
    """(k,) the share of the steps, in marked states, in which an action is taken."""
    truth, taken = page.truth, page.mdp.actions == page.mdp.action_names.index(name)
    if mask is None:
        return truth.x[:, taken].sum(axis=1)
    return truth.x[:, taken & mask[truth.state]].sum(axis=1) / truth.time[:, mask].sum(axis=1)


def action_of(page: Page, words: str) -> Bools:
    """(N,) the choices of an action as a rule says it: "repairs", "goes north", "mends a"."""
    found = []
    for number, name in enumerate(page.mdp.action_names):
        first, blank, rest = name.replace(" ", "_").partition("_")
        said = f"goes {name}" if name in DIRECTIONS else f"{first}s{blank and ' '}{rest}"
        found += [number] if said == words.lower() else []
    assert len(found) == 1, f"no such action: {words}"
    return page.mdp.actions == found[0]


@form(
    "sentence",
    rf"(?:(?P<where>In (?:the [\w-]+|(?:states labelled )?'[^']+')), t|T)akes '(?P<action>[^']+)' in (?:only )?(?P<own>{PERCENT}) of its steps{OTHERS}\.",
)
def _(page: Page, i: int, said: dict[str, Any]) -> bool:
    mask = None if said["where"] is None else done_in(page, said["where"].replace("In", "in", 1))
    shares = shares_of_action(page, said["action"], mask)
    return is_percent(said["own"], float(shares[i])) and others_hold(page, i, shares, said)


@form(
    "sentence",
    rf"(?P<how>Never|Hardly ever) takes '(?P<action>[^']+)'(?: (?P<where>in (?:the [\w-]+|(?:states labelled )?'[^']+')))?(?: in the long run)?; (?P<who>the others|most others|{PLANS}) takes? it in "
    rf"(?P<mean>{PERCENT}) of (?:their|its) steps( there)?(?: on average)?\.",
)
def _(page: Page, i: int, said: dict[str, Any]) -> bool:
    mask = None if said["where"] is None else done_in(page, said["where"])
    shares = shares_of_action(page, said["action"], mask)
    own = float(shares[i])
    return others_hold(page, i, shares, said) and (own < 1e-8 if said["how"] == "Never" else own < 0.005)


def acting_alone(page: Page, i: int) -> Floats:
    """(S,) the time of plan i in states where it does, nearly always, what no other plan that comes there ever does."""
    truth, found = page.truth, np.zeros(page.mdp.n_states)
    comes = truth.time > 1e-9
    for choice in np.flatnonzero(page.truth.plans.policies[i] > 0.95):
        state = truth.state[choice]
        there = [j for j in page.others[i] if comes[j, state]]
        if comes[i, state] and there and all(truth.plans.policies[j, choice] <= 1e-9 for j in there):
            found[state] = truth.time[i, state]
    return found


def takes(page: Page, i: int, action: str, state: int) -> bool:
    mask = page.mdp.actions == page.mdp.action_names.index(action)
    return float(page.truth.plans.policies[i, mask & (page.truth.state == state)].sum()) > 0.95


@form(
    "sentence",
    rf"The only plan to take '(?P<action>.+)' in '(?P<state>.+)', where it spends (?P<share>{PERCENT}) of its time\.",
)
def _(page: Page, i: int, said: dict[str, Any]) -> bool:
    state = state_of(page.mdp, said["state"])
    return takes(page, i, said["action"], state) and is_percent(said["share"], float(acting_alone(page, i)[state]))


@form(
    "sentence",
    rf"Acts in (?P<share>{PERCENT}) of its steps as no other plan does, most often by taking '(?P<action>.+)' in '(?P<state>.+)'\.",
)
def _(page: Page, i: int, said: dict[str, Any]) -> bool:
    alone, state = acting_alone(page, i), state_of(page.mdp, said["state"])
    most = float(alone[state]) >= float(alone.max()) - 1e-12
    return most and takes(page, i, said["action"], state) and is_percent(said["share"], float(alone.sum()))


@form("sentence", rf"Chooses at random in '(?P<state>.+?)': '(?P<first>.+?)' in (?P<share>{PERCENT}), .+ of cases\.")
def _(page: Page, i: int, said: dict[str, Any]) -> bool:
    policy, state = page.truth.plans.policies[i], state_of(page.mdp, said["state"])
    visited = page.truth.time[i][page.truth.state] > 1e-12
    mixed = {int(s) for s in page.truth.state[visited & (policy > 1e-6) & (policy < 1 - 1e-6)]}
    named = action_of_name(page, said["first"]) & (page.truth.state == state)
    return mixed == {state} and is_percent(said["share"], float(policy[named].sum()))


def action_of_name(page: Page, name: str) -> Bools:
    return page.mdp.actions == page.mdp.action_names.index(name)


# ---- rules ------------------------------------------------------------------------------------------------------------


@form(
    "sentence",
    rf"(?P<cases>.+); (?:otherwise|elsewhere mostly) (?P<rest>[^;]+?)(?: where possible)?(?:; (?P<partly>no full description: )?exact in (?:the long run|(?P<exact>{PERCENT}) of its (?P<of>time|decisions))(?:, and it (?P<left>.+), for which no short rule was found)?)?\.",
)
def _(page: Page, i: int, said: dict[str, Any]) -> bool:
    truth = page.truth
    named, right = np.zeros(page.mdp.n_states, bool), np.zeros(page.mdp.n_choices, bool)
    followed = np.zeros(page.mdp.n_choices, bool)  # by whoever takes the first action that is said and can be taken
    cases = []
    for case in re.split(r", (?=\w+s(?: \w+)? (?:at|when) )", said["cases"]):
        verb, _, ways = re.fullmatch(r"(.+?)( )((?:at|when) .+)", case).groups()  # pyright: ignore[reportOptionalMemberAccess]
        cases += [(action_of(page, verb), conditions(page, way)) for way in re.split(r" or (?=at |when )", ways)]
    cases.append((action_of(page, said["rest"]), np.ones(page.mdp.n_states, bool)))
    for action, where_ in cases:
        right |= action & (where_ & ~named)[truth.state]
        named |= where_
        taken = np.bincount(truth.state[followed], minlength=page.mdp.n_states) > 0
        followed |= action & (where_ & ~taken)[truth.state]
    counted = deciding(page, i, said["of"])
    if not is_percent(said["exact"] or "100 %", float(truth.x[i, right & counted].sum() / truth.x[i, counted].sum())):
        return False
    kept = followed_value(page, i, followed) >= truth.rewards[i] - 0.01 * abs(truth.best) - 1e-9
    return bool(kept) != bool(said["partly"]) or bool(said["left"])


def followed_value(page: Page, i: int, followed: Bools) -> float:
    """What whoever takes the marked choices earns from the start, and does what plan i does in states without any."""
    truth = page.truth
    without = np.bincount(truth.state[followed], minlength=page.mdp.n_states) == 0
    policy = np.where(without[truth.state], truth.plans.policies[i], followed)
    policy /= np.bincount(truth.state, policy)[truth.state]
    x = truth._long_run(truth._chain(policy))[truth.state] * policy
    return float(x @ page.mdp.reward) / (float(x @ sum(page.mdp.ends.values())) if truth.episodic else 1.0)


def deciding(page: Page, i: int, of: str | None = None) -> Bools:
    """(N,) the choices in states with several actions; all if plan i is only in such states, or never, or it is said so."""
    truth = page.truth
    several = np.array([len(set(page.mdp.actions[truth.state == s])) > 1 for s in range(page.mdp.n_states)])
    visited = truth.time[i] > 1e-12
    whole = several[visited].all() or not several[visited].any()
    assert of is None or whole == (of == "time")
    return np.ones(page.mdp.n_choices, bool) if whole else several[truth.state]


def rule_row_holds(page: Page, i: int, actions: list[str], row: dict[str, Any]) -> bool:
    """Each cell names states in which the plan takes the action, or how often it does; together they are as exact as said."""
    truth, exact, seen, counted = page.truth, 0.0, np.zeros(page.mdp.n_states), deciding(page, i)
    time = truth.x[i] * counted / truth.x[i, counted].sum()
    for action, text in zip(actions, row["texts"], strict=True):
        taken = page.mdp.actions == page.mdp.action_names.index(action)
        share = float(time[taken].sum())
        often = re.fullmatch(rf"in ({PERCENT}) of its (?:time|decisions)", text)
        if text == "–":
            if share > 1e-12:
                return False
        elif often:
            if not is_percent(often[1], share):
                return False
        else:
            mask = np.any([conditions(page, way) for way in text.split("; ")], axis=0)
            exact += float(time[taken & mask[truth.state]].sum())
            seen += mask
    visited = np.bincount(truth.state, time) > 1e-12
    return is_percent(row["exact"], exact) and bool((seen[visited] == 1).all())


# ---- the tests --------------------------------------------------------------------------------------------------------


def test_what_stands_above_the_plans(page):
    for kind in ("headline", "guarantee", "ways", "difference", "promise", "duplicates"):
        if page.view[kind]:
            check(page, kind, page.view[kind])
    if page.view["strip"]:
        check(page, "strip", page.view["strip"]["label"])


def test_routes_are_handed_out_exactly_where_the_picture_draws_them(page):
    if page.view["drawn"]:
        overview = page.view["overview"]
        drawn = {route["plan"] for route in (*overview["routes"], *overview["grey"])}
        assert {i for i, plan in enumerate(page.view["data"]["plans"]) if plan["routes"]} == drawn
        assert {i for i, card in enumerate(page.view["cards"]) if card["has_way"]} == drawn


def test_of_the_best_plans_the_shortest_is_the_reference(page):
    table, rewards = page.view["table"], page.truth.rewards
    equal = [i for i in range(page.k) if page.truth.best - rewards[i] <= 1e-9 * abs(page.truth.best)]
    names = [column["name"] for column in table["columns"]]
    lengths = [name for name in names if name in ("steps to goal", "steps per episode")]
    assert page.view["several_best"] == (len(equal) > 1)
    if equal and lengths:
        column = names.index(lengths[0])
        steps = [float(table["rows"][i][column].text.replace(",", "")) for i in equal]
        assert float(table["best"][column].replace(",", "")) == min(steps)


def test_the_best_value_and_the_diversity(page):
    assert is_figure(page.view["diversity"], float(page.truth.distances.sum() / page.k / (page.k - 1)))
    assert f"{page.truth.best:.4g}" == page.view["optimum"]


def test_titles_chips_and_figures(page):
    for i, card in enumerate(page.view["cards"]):
        assert card["number"] == i + 1
        assert title_holds(page, i, card["title"]), (i + 1, card["title"])
        for chip in card["chips"]:
            check(page, "chip", chip["text"], i)
        for figure in card["figures"]:
            assert figure_holds(page, i, figure["name"], figure["text"]), (i + 1, figure)


def test_sentences(page):
    for i, card in enumerate(page.view["cards"]):
        assert card["lead"] in card["sentences"]
        for sentence in card["sentences"]:
            check(page, "sentence", sentence, i)


def test_whom_plans_suit(page):
    """People are drawn at random, so only what the words say about the plan is computed again."""
    for i, card in enumerate(page.view["cards"]):
        assert card["suits"] == "" or re.search("like|avoid", card["suits"])
        for wish, names in re.findall(r"(like|avoid) (.+?)(?= and would|\.$)", card["suits"]):
            for name in re.split(r", (?=the |places|states)| and ", names):
                times = _liked(page, name)
                assert (times[i] > times.mean()) == (wish == "like"), card["suits"]
        assert bool(re.search(r"\d", card["suits"])) <= ("the state '" in card["suits"]), card["suits"]


def _liked(page: Page, name: str) -> Floats:
    """(k,) the time of each plan in what a person likes: a ninth or a region of the map, a label, a state or an action."""
    ninth = re.fullmatch(r"the ([\w-]+) of the map", name)
    if ninth:
        assert page.mdp.layout is not None
        cells, (rows, columns) = page.mdp.layout.cells, page.mdp.layout.shape
        down, across = 3 * (cells // columns) // rows, 3 * (cells % columns) // columns
        words = ninth[1].split("-")
        at = (1 + ("south" in words) - ("north" in words), 1 + ("east" in words) - ("west" in words))
        return page.truth.time[:, (down == at[0]) & (across == at[1])].sum(axis=1)
    quoted = re.fullmatch(r"(the action|the state|places labelled) '(.+)'", name)
    if quoted is None:
        regions = find_regions(page.mdp)
        return page.truth.time[:, regions.of_state == regions.names.index(name.removeprefix("the "))].sum(axis=1)
    if quoted[1] == "the action":
        return shares_of_action(page, quoted[2])
    return page.truth.time[:, where(page, f"in '{quoted[2]}'")[0]].sum(axis=1)


def test_what_random_people_gain():
    """The gain of each person is that of the plan worth most to them, and a linear program bounds what they could gain."""
    plans = plan(example_file("maintenance.csv"), 3, slack=0.07)
    mdp, truth, persons = plans.mdp, Truth(plans), suits.ASKED
    shown, found = suits._gain(plans), served(plans, persons=persons)
    _, worth = _drawn(plans, None, persons, 1_000_000)
    best = truth._long_run(truth._chain(plans.proof.best))[truth.state] * plans.proof.best
    flow = np.vstack([(truth.members - mdp.transitions.T).toarray(), np.ones(mdp.n_choices)])
    balanced = np.append(np.zeros(mdp.n_states), 1.0)
    for person in range(persons):
        wish = worth.costs_of_one(person)  # reward and preference together
        gain = max(float((truth.x @ wish).max() - best @ wish), 0.0)
        bound = -linprog(-wish, -mdp.reward[None], [-truth.floor], flow, balanced).fun - best @ wish
        assert found.gains[person] == pytest.approx(gain, abs=1e-8)
        assert gain - 1e-8 <= found.possible[person] <= bound + 1e-8
    assert shown == {
        "share": f"{100 * found.gains.sum() / found.possible.sum():.0f}",
        "worst": f"{100 * found.worst_tenth:.0f}",
        "persons": "60",
        "gaining": str(np.count_nonzero(found.possible)),
        "few": False,
    }


def _labelled(page: Page, name: str) -> Bools:
    """(S,) the states of a label, or of a room or passage of the map."""
    if name in page.mdp.labels:
        return page.mdp.labels[name]
    regions = find_regions(page.mdp)
    return regions.of_state == regions.names.index(name)


def test_leeway(page):
    for row in page.view["leeway"]:
        mask = _labelled(page, row["name"])
        times = page.truth.time[:, mask].sum(axis=1)
        text = re.fullmatch(rf"({PERCENT}) to ({PERCENT})", row["text"])
        assert text, row["text"]
        none = f"Between none and {text[2]} of the time in '{row['name']}': yours to choose."
        some = f"Between {text[1]} and {text[2]} of the time in '{row['name']}'."
        assert row["sentence"] == (none if text[1] == "0 %" else some)
        low, high = page.truth.range_of(mask, page.answers[row["name"]])
        assert low - 1e-7 <= times.min()
        assert times.max() <= high + 1e-7
        assert is_percent(text[1], low if low > 1e-8 else 0.0), (row["text"], low)
        assert is_percent(text[2], high), (row["text"], high)
        marks = [mark for part in row["marks"] for mark in part["text"].split("; ")]
        assert len(marks) == page.k
        for mark in marks:
            number, share = re.fullmatch(rf"plan (\d+): ({PERCENT})", mark).groups()
            assert is_percent(share, float(times[int(number) - 1])), mark


def test_tables_of_rules_and_decisions(page):
    truth, rules, decisions = page.truth, page.view["rules"], page.view["decisions"]
    for i, row in enumerate(rules["rows"] if rules else ()):
        assert rule_row_holds(page, i, rules["actions"], row), row
    if decisions is None:
        return
    comes = truth.time > 1e-12
    differ = _differing(page, comes)
    assert len(decisions["rows"]) + decisions["left_out"] == len(differ)
    for row in decisions["rows"]:
        state = state_of(page.mdp, row["name"])
        assert state in differ
        for number, cell in zip(decisions["plans"], row["cells"], strict=False):
            assert (cell is None) == (not comes[number - 1, state])
            if cell is not None:
                assert takes(page, number - 1, cell["action"], state)
                assert is_percent(cell["share"], float(truth.time[number - 1, state])), (row["name"], cell)
        if decisions["best"]:
            best_cell_holds(page, row["cells"][-1], state)


def best_cell_holds(page: Page, cell: dict[str, Any] | None, state: int) -> None:
    """The policy that the last column of the table of decisions is about is optimal, and does so in the state."""
    truth, policy = page.truth, page.truth.plans.proof.best
    time = truth._long_run(truth._chain(policy))
    reward = float((time[truth.state] * policy) @ page.mdp.reward)
    ends = float((time[truth.state] * policy) @ sum(page.mdp.ends.values())) if truth.episodic else 1.0
    assert reward / ends == pytest.approx(truth.best, rel=1e-6)
    assert (cell is None) == (time[state] <= 1e-12)
    if cell is not None:
        chances = {page.mdp.action_name(int(x)): policy[x] for x in np.flatnonzero(truth.state == state)}
        assert max(chances, key=chances.__getitem__) == cell["action"].partition(" (")[0]
        assert is_percent(cell["share"], float(time[state])), cell


def _differing(page: Page, comes: Any) -> list[int]:
    """The states in which two plans that come there take different choices."""
    truth, found = page.truth, []
    for state in np.flatnonzero(comes.sum(axis=0) > 1):
        chances = truth.plans.policies[np.ix_(comes[:, state], truth.state == state)]
        if np.ptp(chances, axis=0).max() > 0.05:
            found.append(int(state))
    return found


def test_groups(page):
    groups = page.view["groups"]
    assert (groups is None) == (page.k <= 8)
    for group in groups or ():
        leader, members, others = group["leader"], group["members"], len(group["members"]) - 1
        assert group["summary"] == (f"{others} more like plan {leader + 1}" if others else "")
        assert page.truth.rewards[leader] == page.truth.rewards[list(members)].max()
        assert group["title"] == page.view["cards"][leader]["title"]
    assert groups is None or sorted(i for group in groups for i in group["members"]) == list(range(page.k))
