"""The rules of the preference study. They were fixed, in words and in code, before the study was run on its worlds."""

from __future__ import annotations

from manyways.studies.contestants import REPRESENTATIVE, UNLIMITED
from manyways.studies.persons import SMOOTH
from manyways.studies.results import Results
from manyways.studies.shares import ALL, MEASURES, WITHIN, Shares, shares_of_rounds, shares_of_sets
from manyways.studies.verdicts import Verdict, against, judged, least_lead, mean_estimate

MOST_BEHIND = 0.05
THIRD_ROUND = 0.75


def set_claims(found: Results) -> list[Verdict]:
    """The representative set beats every other set for smooth preferences, and is not far behind for any family."""
    shares = shares_of_sets(found)
    if shares is None:
        return []
    sizes = sorted({row["k"] for row in found.good if "k" in row})
    verdicts = []
    for measure in MEASURES:
        verdicts += [_beats_all(shares, measure, k) for k in sizes]
        verdicts += [
            _not_far_behind(shares, measure, family, sizes)
            for family in shares.families()
            if shares.counts([family], measure)
        ]
    return verdicts


def _rivals(shares: Shares, measure: str) -> list[str]:
    names = dict.fromkeys(key[0] for key in shares.gains if isinstance(key, tuple))
    return [name for name in names if name != REPRESENTATIVE and (measure == ALL or name not in UNLIMITED)]


def _beats_all(shares: Shares, measure: str, k: int) -> Verdict:
    own = shares.of((REPRESENTATIVE, k), SMOOTH, measure)
    others = {name: shares.of((name, k), SMOOTH, measure) for name in _rivals(shares, measure)}
    return Verdict(
        f"For smooth preferences, {k} representative plans recover more of the possible gain, {MEASURES[measure]}, than every "
        f"other set of {k}",
        "its share is larger than that of every other set",
        REPRESENTATIVE,
        "",
        against(own, others),
        judged(len(shares.worlds), least_lead(own, others) > 0),
    )


def _not_far_behind(shares: Shares, measure: str, family: str, sizes: list[int]) -> Verdict:
    own = mean_estimate([shares.of((REPRESENTATIVE, k), [family], measure) for k in sizes])
    others = {
        name: mean_estimate([shares.of((name, k), [family], measure) for k in sizes])
        for name in _rivals(shares, measure)
    }
    return Verdict(
        f"For {family} preferences, representative plans are not worse than the best other set by more than {MOST_BEHIND:g}, "
        f"{MEASURES[measure]}",
        f"no other set has a share, on average over k, that is larger by more than {MOST_BEHIND:g}",
        REPRESENTATIVE,
        "",
        against(own, others),
        judged(len(shares.worlds), least_lead(own, others) >= -MOST_BEHIND),
    )


def round_claims(found: Results) -> list[Verdict]:
    """In the third round, persons with smooth preferences get most of what is possible."""
    shares = shares_of_rounds(found)
    if shares is None:
        return []
    verdicts = []
    for chooser in dict.fromkeys(key[0] for key in shares.gains if isinstance(key, tuple)):
        if (chooser, 3) not in shares.gains:
            continue
        for measure in (WITHIN, ALL):
            own = shares.of((chooser, 3), SMOOTH, measure)
            verdicts.append(
                Verdict(
                    f"In the third round, a person with {chooser} answers and a smooth preference gets at least "
                    f"{THIRD_ROUND:g} of the possible gain, {MEASURES[measure]}",
                    f"the share is at least {THIRD_ROUND:g}",
                    f"rounds, {chooser} answers",
                    "",
                    str(own),
                    judged(len(shares.worlds), own.samples >= THIRD_ROUND),
                )
            )
    return verdicts
