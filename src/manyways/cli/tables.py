"""Plan sets and certificates as tables for people and as JSON for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyways.cli.common import console, print_json

if TYPE_CHECKING:
    from rich.table import Table

    from manyways.describe.wording import Terms
    from manyways.plans import Certificate, PlanSet

FAR = 0.2
"""A plan that loses more than this share of the optimal reward is hardly near-optimal."""
UNVERIFIED_ADVICE = (
    "their figures may be wrong: the model probably mixes too slowly for double precision; leave out transitions that "
    "practically never happen, or plan with --discount 0.99"
)


def print_plans(
    plans: PlanSet, written: dict[str, Path | None], as_json: bool, memory_mib: Sequence[int] | None = None
) -> None:
    """Print a plan set and the files that were written, by what is in them; and the largest memory of each process, if several
    planned together."""
    if as_json:
        together = {} if memory_mib is None else {"memory_mib": list(memory_mib)}
        files = {what: str(path) for what, path in written.items() if path}
        print_json(_summary(plans) | together | {"written": files})
        return
    from manyways.describe.wording import terms_of

    screen, terms = console(), terms_of(plans.mdp)
    screen.print(_plans_table(plans, terms))
    for sentence in (plans.guarantee, plans.ways):
        if sentence:
            screen.print(sentence, soft_wrap=True)
    screen.print(
        f"objective {plans.objective:.4f} ({terms.objective(plans.maximised.describe(), plans.criterion)}): "
        f"mean {terms.noun} {terms.shown(plans.rewards.mean()):.4f}, diversity {plans.diversity:.4f}; "
        f"optimal {terms.noun} {terms.shown(plans.optimal_reward):.4f}; {plans.status}, {plans.seconds:.2f} s"
    )
    for i, j in plans.near_duplicates:
        screen.print(f"plans {i + 1} and {j + 1} are nearly the same")
    if plans.certificate is not None and plans.certificate.failed:
        failed = ", ".join(
            f"{check.name} (error {check.error:.1e}, allowed {check.tolerance:.0e})"
            for check in plans.certificate.failed
        )
        screen.print(f"NOT verified: {failed}", style="bold red", soft_wrap=True)
        screen.print(UNVERIFIED_ADVICE, soft_wrap=True)
    if advice := _advice(plans, terms):
        screen.print(advice, soft_wrap=True)
    if memory_mib is not None:
        screen.print(f"largest memory of each process: {', '.join(map(str, memory_mib))} MiB", soft_wrap=True)
    for what, path in written.items():
        if path:
            screen.print(f"{what} written to {path}", soft_wrap=True)


def certificate_table(certificate: Certificate) -> Table:
    from rich.table import Table

    table = Table(title="verified" if certificate.ok else "NOT verified", title_justify="left")
    for column in ("check", "error", "allowed", ""):
        table.add_column(column)
    for check in certificate.checks:
        table.add_row(check.name, f"{check.error:.1e}", f"{check.tolerance:.0e}", "ok" if check.ok else "FAILED")
    return table


def certificate_json(certificate: Certificate) -> dict[str, Any]:
    checks = [
        {
            "name": check.name,
            "error": check.error if isfinite(check.error) else None,
            "tolerance": check.tolerance,
            "ok": check.ok,
        }
        for check in certificate.checks
    ]
    return {"ok": certificate.ok, "checks": checks}


def _advice(plans: PlanSet, terms: Terms) -> str | None:
    """What to do if a plan is far from the optimum."""
    best, worst = plans.optimal_reward, int(plans.rewards.argmin())
    lost = best - plans.rewards[worst]
    if plans.k == 1 or plans.tradeoff is None or terms.shown(best) <= 0 or lost <= FAR * abs(best):
        return None
    if plans.derived and plans.limits.floor is not None:  # that much was allowed
        return None
    remedy = (
        "--slack limits that"
        if plans.derived
        else (f"with a smaller --tradeoff (now {plans.tradeoff:.4g}) plans are closer to the optimum")
    )
    return f"the {terms.noun} of plan {worst + 1} is {100 * lost / abs(best):.0f} % {terms.off}; {remedy}"


def _summary(plans: PlanSet) -> dict[str, Any]:
    return {
        "model": {
            "name": plans.mdp.name,
            "states": plans.mdp.n_states,
            "choices": plans.mdp.n_choices,
            "digest": plans.mdp.digest,
            "costs": plans.mdp.costs,
        },
        "k": plans.k,
        "tradeoff": None if plans.tradeoff is None or not isfinite(plans.tradeoff) else plans.tradeoff,
        "limits": asdict(plans.limits),
        "guarantee": plans.guarantee,
        "ways": plans.ways,
        "seed": plans.seed,
        "maximised": repr(plans.maximised),
        "method": repr(plans.method),
        "criterion": repr(plans.criterion),
        "behaviour": repr(plans.behaviour),
        "status": str(plans.status),
        "objective": plans.objective,
        "rewards": plans.rewards.tolist(),
        "optimal_reward": plans.optimal_reward,
        "diversity": plans.diversity,
        "distances": plans.distances.tolist(),
        "gap": plans.gap if isfinite(plans.gap) else None,
        "iterations": len(plans.trace),
        "seconds": plans.seconds,
        "verified": plans.certificate is not None and plans.certificate.ok,
        "failed_checks": [] if plans.certificate is None else [check.name for check in plans.certificate.failed],
    }


def _plans_table(plans: PlanSet, terms: Terms) -> Table:
    from rich.table import Table
    from rich.text import Text

    from manyways.describe.measure import in_time
    from manyways.describe.survey import negligible
    from manyways.describe.wording import tabled

    table = Table(title=Text(f"{plans.mdp.name}: {plans.k} plan{'s' if plans.k > 1 else ''}"), title_justify="left")
    limited = in_time(plans)
    rates = [rate.name.removeprefix("reaches ").replace(" in ", " in\n") for rate in limited]  # narrow
    for column in ("plan", terms.noun, terms.loss, *rates, "nearest other", "mean distance"):
        table.add_column(column, justify="right")
    for i, reward in enumerate(plans.rewards):
        loss = plans.optimal_reward - reward
        loss = loss if abs(loss) > 1e-9 * max(abs(plans.optimal_reward), 1.0) else 0.0
        share = (
            f" ({tabled(loss / abs(plans.optimal_reward))})" if abs(plans.optimal_reward) > negligible(plans) else ""
        )
        others = [plans.distances[i, j] for j in range(plans.k) if j != i]
        nearest = f"{min(others):.3f} (plan {_nearest(plans, i) + 1})" if others else "-"
        mean = f"{sum(others) / len(others):.3f}" if others else "-"
        own = [tabled(rate.values[i] or 0.0) for rate in limited]
        table.add_row(str(i + 1), f"{terms.shown(reward):.4f}", f"{loss:.4f}{share}", *own, nearest, mean)
    return table


def _nearest(plans: PlanSet, i: int) -> int:
    return min((j for j in range(plans.k) if j != i), key=lambda j: plans.distances[i, j])
