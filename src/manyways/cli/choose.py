"""The command that lets a person choose a plan by rounds: choose."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from manyways.cli.common import Apart, Longer, Slack, app, console, progress_bar

if TYPE_CHECKING:
    from manyways.conversation import Conversation
    from manyways.plans import PlanSet


@app.command(
    epilog="Examples: manyways choose nine-rooms:0 --out mine.mwc  |  manyways choose --resume mine.mwc --reward learned.json  |  "
    "echo 3 1 q | tr ' ' '\\n' | manyways choose office.yaml --k 4 --slack 5%"
)
def choose(
    source: Annotated[
        str | None,
        typer.Argument(
            help="A model as for 'manyways plan', settings after a question mark; or a file that 'manyways plan --out' "
            "wrote, of which the model is taken. Not with --resume."
        ),
    ] = None,
    k: Annotated[int | None, typer.Option(help="Number of plans in a round; by default 6.")] = None,
    slack: Slack = None,
    longer: Longer = None,
    apart: Apart = None,
    seed: Annotated[int | None, typer.Option(help="Seed of all random draws; by default 0.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Save the rounds to this file (.mwc) after every answer; by default the one of --resume."),
    ] = None,
    resume: Annotated[Path | None, typer.Option(help="Go on with a file that --out wrote.")] = None,
    reward: Annotated[
        Path | None, typer.Option(help="At the end, write what was learned to this file (.json), as a reward.")
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option(help="At the end, write the plan that was taken last to this file (.json .csv .npz .scheduler)."),
    ] = None,
    route: Annotated[
        Path | None,
        typer.Option(
            help="At the end, write the route of that plan on the map to this file (.csv .json .yaml); see export."
        ),
    ] = None,
) -> None:
    """Choose a plan by rounds that learn from your choices.

    Each round shows a few plans; the next ones are closer to what you like. Answer with the number of the one that you like best, u to go back, or q to stop. Answers
    can also come from a file or a pipe, one per line; the end of the input stops.
    """
    from manyways.behaviours import Near
    from manyways.conversation import Conversation
    from manyways.errors import SettingError
    from manyways.files import check_writable
    from manyways.plans.policy_files import check_policy_path
    from manyways.plans.route import check_route_path

    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")  # bytes that are no text are refused like any other wrong answer
    given = [
        name
        for name, value in {"--k": k, "--slack": slack, "--longer": longer, "--apart": apart, "--seed": seed}.items()
        if value is not None
    ]
    if resume is not None and given:
        raise SettingError(f"{', '.join(given)} cannot be used with --resume: {resume} has these settings")
    out = resume if out is None else out
    for path in (out, reward, policy, route):
        if path is not None:
            check_writable(path)
    if policy is not None:
        check_policy_path(policy)
    if route is not None:
        check_route_path(route)
    if resume is not None and source is None:
        talk = Conversation.load(resume)
    elif source is not None and resume is None:
        with progress_bar(quiet=False) as progress:
            behaviour: dict[str, Any] = {} if apart is None else {"behaviour": Near(apart)}
            count = 6 if k is None else k
            talk = Conversation(
                source, count, slack=slack, longer=longer, seed=seed or 0, progress=progress, **behaviour
            )
    else:
        raise SettingError("give either a source or --resume FILE.mwc: see manyways choose --help")
    interrupted = _rounds(talk, out)
    _end(talk, out, reward, policy, route)
    if interrupted:
        raise KeyboardInterrupt


def _rounds(talk: Conversation, out: Path | None) -> bool:
    """Ask until the person stops; returns whether that was by Ctrl-C."""
    try:
        _show(talk)
        while (answer := _asked(talk)) != "q":
            if answer == "u":
                talk.undo()
            else:
                with progress_bar(quiet=False) as progress:
                    talk.choose(int(answer) - 1, progress)
            if out is not None:
                talk.save(out)
            _show(talk)
    except KeyboardInterrupt:  # while planning, too: the question then has no answer
        print()
        return True
    return False


def _asked(talk: Conversation) -> str:
    """A number of a plan, u or q; asks again until it is one of these. The end of the input counts as q."""
    k, first = talk.plans.k, len(talk.rounds) == 1
    while True:
        print(f"Which would you take? [1-{k}, u = back, q = stop] ", end="", flush=True)
        line = sys.stdin.readline()
        answer = line.strip().lower()
        if not line or not sys.stdin.isatty():
            print(answer)  # the line break that a terminal would show
        if not line or answer == "q":
            return "q"
        if answer == "u" and first:
            print("there is no answer to take back")
        elif answer == "u" or (answer.isascii() and answer.isdigit() and 1 <= int(answer[:9]) <= k):
            return answer
        elif answer:
            print(f"expected a number from 1 to {k}, u or q, found {answer[:40]!r}")


def _show(talk: Conversation) -> None:
    """Print the plans of the round, and what the answers so far say."""
    from rich.table import Table
    from rich.text import Text

    from manyways.describe import measures, portraits, survey_of
    from manyways.report.learned import leanings, sentences
    from manyways.report.tables import texts_of
    from manyways.report.view import telling

    plans, best, screen = talk.plans, talk.rounds[-1].best, console()
    survey = survey_of(plans)
    value, loss = (texts_of(measure) for measure in measures(survey)[:2])
    names = [measure.name for measure in measures(survey)[:2]]
    table = Table(title=Text(f"{plans.mdp.name}: round {len(talk.rounds)}"), title_justify="left", show_lines=True)
    table.add_column("", justify="right")
    table.add_column("plan", ratio=1)
    for name in names:
        table.add_column(name, justify="right")
    words = portraits(survey)
    for i in range(plans.k):
        pick = " (your pick so far)" if i == best else ""
        about = "\n".join([words[i].title + pick, *telling(words, i)[:1]])
        table.add_row(str(i + 1), Text(about), value[i], loss[i])
    screen.print(table)
    if best is not None:
        screen.print(Text(" ".join(sentences(leanings(talk)))), soft_wrap=True)


def _end(talk: Conversation, out: Path | None, reward: Path | None, policy: Path | None, route: Path | None) -> None:
    """Print the plan that was taken last, and write the files."""
    from rich.text import Text

    best, screen = talk.rounds[-1].best, console()
    chosen = talk.best
    answers = len(talk.rounds) - 1
    if best is None:
        screen.print("no plan was taken")
    else:
        many = f"{answers} round{'s' if answers > 1 else ''}"
        screen.print(Text(f"your plan after {many}: {_described(talk.plans, best)}"), soft_wrap=True)
    if out is not None:
        screen.print(Text(f"rounds written to {talk.save(out)}; go on with --resume"), soft_wrap=True)
    if reward is not None:
        screen.print(Text(f"learned preference written to {talk.preference.save(reward)}"), soft_wrap=True)
    if policy is not None and chosen is not None:
        screen.print(Text(f"plan written to {chosen.policy.save(policy)}"), soft_wrap=True)
    if route is not None and chosen is not None:
        screen.print(Text(f"route written to {chosen.route().save(route)}"), soft_wrap=True)


def _described(plans: PlanSet, i: int) -> str:
    from manyways.describe.wording import number, terms_of

    terms = terms_of(plans.mdp)
    return (
        f"{plans.titles[i]}, {terms.noun} {number(terms.shown(plans.rewards[i]))} {plans.criterion.unit} "
        f"(best possible {number(terms.shown(plans.optimal_reward))})"
    )
