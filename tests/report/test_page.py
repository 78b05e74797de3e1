"""The report: one file that opens from disk, in a real browser, and says what the plan set says."""

from __future__ import annotations

import base64
import dataclasses
import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

import manyways as mw
from browser import NASTY, QUOTED, faint_texts, nameless_controls, nasty_plans, needs_browser, opened, running_browser
from manyways.formats.text_maps import world_from_rows
from manyways.model.occupancy import state_occupancy


@pytest.fixture(scope="module")
def rooms() -> mw.PlanSet:
    return mw.plan("nine-rooms:7", k=6, tradeoff=8.0)


@pytest.fixture(scope="module")
def nasty() -> mw.PlanSet:
    return nasty_plans()


@pytest.fixture(scope="module")
def report(rooms, tmp_path_factory) -> Path:
    return rooms.report(tmp_path_factory.mktemp("report") / "plans.html")


@pytest.fixture(scope="module")
def browser():
    with running_browser() as browser:
        yield browser


def page_data(path: Path) -> dict:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text(), re.DOTALL)
    assert found is not None
    return json.loads(found[1])


# ---- what is in the file ----------------------------------------------------------------------


def test_the_report_is_one_file_of_less_than_a_megabyte_that_asks_for_nothing(report):
    text = report.read_text()
    assert len(text.encode()) < 1_000_000
    assert not re.search(r'(src|href)="(?!#|data:)', text)
    assert "http-equiv" in text
    assert "://" not in text


def test_the_maps_are_the_occupancies(rooms, report):
    data = page_data(report)
    by_state = state_occupancy(rooms.mdp, rooms.occupancies)
    for plan, row in zip(data["plans"], by_state, strict=True):
        level = np.frombuffer(base64.b64decode(plan["time"]), np.uint8) / 255
        np.testing.assert_allclose(level**2 * plan["peak"], row, atol=2 * plan["peak"] / 255)
    walls = np.frombuffer(base64.b64decode(data["world"]["walls"]), np.uint8)
    np.testing.assert_array_equal(walls, 255 * rooms.mdp.labels["wall"])
    assert data["world"]["start"] == np.flatnonzero(rooms.mdp.start).tolist()
    assert data["world"]["goals"] == np.flatnonzero(rooms.mdp.labels["goal"]).tolist()


def test_every_step_that_is_played_can_happen_and_earns_what_it_says(rooms, report):
    for i, plan in enumerate(page_data(report)["plans"]):
        chosen = rooms.policies[i] > 0
        for run in plan["runs"]:
            assert len(run["at"]) == len(run["earned"]) >= 20
            goals = [step for step, cell in enumerate(run["at"]) if rooms.mdp.labels["goal"][cell]]
            assert run["met"] == goals
            assert len(goals) == 2
            assert goals[-1] == len(run["at"]) - 1
            assert rooms.mdp.start[run["at"][0]] > 0
            for here, there in zip(run["at"], run["at"][1:], strict=False):
                own = [x for x in np.flatnonzero(chosen) if rooms.mdp.choice_state[x] == here]
                assert any(rooms.mdp.transitions[[x], [there]][0] > 0 for x in own)
            state_reward = [float(rooms.mdp.reward[rooms.mdp.first_choice[s]]) for s in run["at"]]
            np.testing.assert_allclose(run["earned"], np.cumsum(state_reward), rtol=1e-4, atol=1e-3)


def test_runs_with_the_same_number_have_the_same_luck(rooms, report):
    first = [plan["runs"][0]["at"][0] for plan in page_data(report)["plans"]]
    assert len(set(first)) == 1
    again = rooms.policy(0).rollout(40, np.random.default_rng(0)).states
    assert page_data(report)["plans"][0]["runs"][0]["at"][:40] == again.tolist()


def test_large_maps_are_drawn_in_blocks(tmp_path):
    plans = mw.plan("rooms-300:0", k=2, method=mw.FrankWolfe(iterations=0))
    data = page_data(plans.report(tmp_path / "plans.html"))
    assert (data["world"]["rows"], data["world"]["columns"], data["world"]["block"]) == (150, 150, 2)
    level = np.frombuffer(base64.b64decode(data["plans"][0]["time"]), np.uint8).reshape(150, 150) / 255
    own = state_occupancy(plans.mdp, plans.occupancies[0]).reshape(150, 2, 150, 2).sum(axis=(1, 3))
    np.testing.assert_allclose(level**2 * data["plans"][0]["peak"], own, atol=2 * own.max() / 255)


@pytest.mark.parametrize(
    ("source", "settings", "expected"),
    [
        (
            "nine-rooms:7",
            {"k": 2, "tradeoff": 8.0},
            "manyways plan nine-rooms:7 --k 2 --tradeoff 8.0 --seed 0",
        ),
        (
            "four-rooms:1?correct_transition=0.9",
            {"k": 2, "tradeoff": 1.5, "seed": 3, "criterion": mw.Discounted(0.9), "behaviour": mw.States()},
            "manyways plan 'four-rooms:1?correct_transition=0.9' --k 2 --tradeoff 1.5 --seed 3 --discount 0.9 --behaviour states",
        ),
        (
            "four-rooms:1",
            {"k": 2, "tradeoff": 1.0, "method": mw.VertexAscent(starts=2, workers=2), "behaviour": mw.Labels()},
            "manyways plan four-rooms:1 --k 2 --tradeoff 1.0 --seed 0 --behaviour labels --starts 2",
        ),
        (
            "four-rooms:1",
            {"k": 2, "tradeoff": 1.0, "method": mw.FrankWolfe()},
            "manyways plan four-rooms:1 --k 2 --tradeoff 1.0 --seed 0 --method frank-wolfe",
        ),
    ],
)
def test_the_command_gives_the_same_plans_again(tmp_path, source, settings, expected):
    import shlex

    from typer.testing import CliRunner

    from manyways.cli import app
    from manyways.report.view import kept_in

    plans = mw.plan(source, **settings)
    told = kept_in(plans, None)["reproduction"]
    assert told == {"kind": "command", "text": expected}
    CliRunner().invoke(app, [*shlex.split(expected)[1:], "--out", str(tmp_path / "again.mw")])
    np.testing.assert_array_equal(mw.load(tmp_path / "again.mw").policies, plans.policies)


@pytest.mark.parametrize("change", ["model", "kept", "method", "behaviour"])
def test_what_no_command_can_say_is_a_call_that_gives_the_same_plans_again(tmp_path, change, monkeypatch):
    from manyways.report.view import kept_in

    source = mw.four_rooms(1) if change == "model" else "four-rooms:1"
    more = {
        "method": {"method": mw.VertexAscent(stages=(1.0, 0.1))},
        "behaviour": {"behaviour": mw.Labels(("door",))},
    }.get(change, {})
    plans = mw.plan(source, 2, 3.0, **more)
    if change == "kept":
        plans = mw.plan(source, 2, 3.0, keep=plans.policies[:1], avoid=plans.policies[1:])
    monkeypatch.chdir(tmp_path)
    for file in (None, plans.save(tmp_path / "of my own.mw")):
        told = kept_in(plans, file)["reproduction"]
        assert told["kind"] == "call"
        plans.save("plans.mw")
        names: dict = {}
        exec(told["text"], names)
        np.testing.assert_array_equal(names["again"].policies, plans.policies)
        Path("plans.mw").unlink()


def test_the_price_of_diversity_with_a_sweep(tmp_path, rooms):
    found = mw.sweep("nine-rooms:7", tradeoff=[0, 4, 8], k=[3], seeds=1, workers=1)
    text = rooms.report(tmp_path / "plans.html", sweep=found).read_text()
    assert text.count('class="curve-point"') == 3
    assert "k = 3, tradeoff 4" in text
    assert "at other worths of diversity, which stand beside its dots" in text


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("criterion", [mw.Average(), mw.Discounted(0.9)], ids=str)
def test_models_without_choice_layout_or_labels(tmp_path, k, criterion):
    mdp = mw.MDP.from_transitions([("a", "go", "b", 1.0, 0.0), ("b", "back", "a", 1.0, 0.0)])
    text = mw.plan(mdp, k, criterion=criterion).report(tmp_path / "plans.html").read_text()
    assert text.count("<article") == k
    assert ("are nearly the same" in text) == (k > 1)


@pytest.mark.parametrize(
    ("rewards", "best", "worst"),
    [((1.0, 0.999, 0.998, 0.0), 1, 1), ((3.0, 3.0, 1.0), 2, 1), ((2.0, 2.0), 0, 0), ((1234567.1, 1234567.5), 1, 1)],
)
def test_only_the_best_is_called_the_best(rewards, best, worst):
    from manyways.describe import Measure
    from manyways.report.view import _column

    cells = _column(Measure("reward", rewards, "reward", 1, ""))
    assert [cell.rank for cell in cells].count("best") == best
    assert [cell.rank for cell in cells].count("worst") == worst
    assert len({cell.text for cell in cells}) == len(set(rewards))


@pytest.mark.parametrize(
    ("rewards", "promise"),
    [
        ((1.0, 0.997, 0.996), "These plans earn 99.6 to 100 % of what the very best plan earns."),
        ((1.0, 1.0), "These plans earn 100 % of what the very best plan earns."),
        ((1.0, 0.512), "These plans earn 51 to 100 % of what the very best plan earns."),
        ((-1.0, -2.0), "These plans earn -2 to -1 a step, where no plan can earn more than -1."),
        ((1e-17, -1e-17, -3.0), "These plans earn -3 to 1e-17 a step, where no plan can earn more than 1e-17."),
    ],
)
def test_the_promise_is_kept(rewards, promise):
    from manyways.report.view import view

    stay = [(s, f"stay {i}", s, 1.0, x) for s in "ab" for i, x in enumerate((*rewards, -5.0))]
    mdp = mw.MDP.from_transitions([*stay, ("a", "go", "b", 1.0, -5.0), ("b", "go", "a", 1.0, -5.0)])
    plans = mw.plan(mdp, len(rewards), 1000.0)
    changed = dataclasses.replace(plans, rewards=np.array(rewards), optimal_reward=max(rewards))
    assert view(changed)["promise"] == promise


# ---- in a browser -----------------------------------------------------------------------------


def colours(page: Page, canvas: str) -> int:
    """How many different colours a picture has."""
    return page.eval_on_selector(
        canvas,
        """(canvas) => { const all = new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer);
        return new Set(all).size; }""",
    )


@needs_browser
def test_it_opens_from_disk_and_asks_nobody(browser: Browser, rooms, report):
    with opened(browser, "about:blank") as page:
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(report.as_uri())
        assert page.title() == "6 ways: nine-rooms:7"
        assert page.locator(".card").count() == 6
        assert colours(page, "#plan-1 canvas") > 5
        assert colours(page, "#difference") > 5
        assert asked == [report.as_uri()]
        cells = page.locator("table.heat td").all_inner_texts()[1:]
        wanted = [["·" if i == j else f"{x:.2f}" for j, x in enumerate(row)] for i, row in enumerate(rooms.distances)]
        assert cells == [text for row in wanted for text in row]


def test_the_settings_of_the_model_stand_below_its_name(tmp_path):
    pytest.importorskip("gymnasium")
    page = mw.plan("gym:FrozenLake-v1?map_name=8x8", 2).report(tmp_path / "lake.html").read_text()
    assert "With <bdi>map_name=8x8, terminal=restart</bdi>" in page
    assert "an episode that fails soon costs little" in page


@needs_browser
def test_a_wall_that_is_crossed_is_still_a_wall(browser: Browser, tmp_path):
    """The shortest way leads through one: it is darker there than on the floor behind."""
    world = world_from_rows(["S#.G", "...."], "crossing", correct_transition=1.0, wall_reward=-1.0)
    with opened(browser, mw.plan(world, 1).report(tmp_path / "plans.html").as_uri()) as page:
        page.wait_for_timeout(200)
        brightness = page.evaluate(
            """() => { const c = document.querySelector('#plan-1 canvas'), pen = c.getContext('2d');
            return [1, 2].map((i) => { const d = pen.getImageData((i + 0.5) * c.width / 4, c.height / 4, 1, 1).data; return d[0] + d[1] + d[2]; }); }"""
        )
        assert 0 < brightness[0] < brightness[1] - 20


@needs_browser
def test_compare_two_plans(browser: Browser, rooms, report):
    with opened(browser, report.as_uri()) as page:
        page.locator("#plan-2").get_by_role("button", name="Compare").click()
        page.locator("#plan-5").get_by_role("button", name="Compare").click()
        assert page.input_value("#left") == "1"
        assert page.input_value("#right") == "4"
        assert page.locator(".picked").count() == 0
        assert f"distance {rooms.distances[1, 4]:.2f}" in page.inner_text("#apart")
        page.select_option("#right", "0")
        assert page.inner_text("#right-name").startswith("Plan 1:")
        assert f"distance {rooms.distances[1, 0]:.2f}" in page.inner_text("#apart")
        # Point at the cell in which the left plan spends the most time that the right one does not.
        by_state = state_occupancy(rooms.mdp, rooms.occupancies)
        row, column = divmod(int(np.argmax(by_state[1] - by_state[0])), 19)
        box = page.locator("#difference").bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + (column + 0.5) * box["width"] / 19, box["y"] + (row + 0.5) * box["height"] / 19)
        told = page.inner_text("#pointed")
        assert told.startswith(f"row {row}, column {column}: ")
        one, other = (float(x) for x in re.findall(r"([\d.]+) %", told))
        state = row * 19 + column
        assert (one, other) == pytest.approx((100 * by_state[1, state], 100 * by_state[0, state]), abs=0.15)


@needs_browser
def test_play_both_with_the_keyboard_alone(browser: Browser, report):
    runs = [plan["runs"][0] for plan in page_data(report)["plans"]]
    with opened(browser, report.as_uri()) as page:
        page.clock.install()
        page.clock.pause_at(page.evaluate("Date.now()") + 1000)
        page.focus("#speed")
        page.keyboard.press("End")
        page.focus("#play")
        page.keyboard.press("Enter")
        assert page.get_attribute("#play", "aria-pressed") == "true"
        page.clock.run_for(100)
        page.keyboard.press("Enter")
        assert page.get_attribute("#play", "aria-pressed") == "false"
        told = page.inner_text("#left-moment")
        step = int(re.findall(r"^first time: step (\d+);", told)[0])
        assert 1 < step < min(run["met"][0] for run in runs)
        for side in ("left", "right"):
            told, run = page.inner_text(f"#{side}-moment"), runs[int(page.input_value(f"#{side}"))]
            assert told.startswith(f"first time: step {step};")
            assert float(told.rsplit(" ", 1)[1]) == pytest.approx(run["earned"][step - 1], rel=1e-3)
        page.clock.run_for(100)
        assert page.inner_text("#right-moment") == told, "it moves on after a pause"
        page.click("#again-from-start")
        assert page.inner_text("#left-moment").startswith("first time: step 1;")


@needs_browser
def test_play_a_card_to_its_end_and_again(browser: Browser, report):
    with opened(browser, report.as_uri()) as page:
        page.clock.install()
        page.locator("#speed").fill("7")
        button = page.locator("#plan-3 [data-do=play]")
        button.click()
        page.clock.run_for(10_000)
        assert button.get_attribute("aria-pressed") == "false"
        first, second = page_data(report)["plans"][2]["runs"][0]["met"]
        told = f"second time: reached the goal after {second - first - 1} steps;"
        assert page.inner_text("#plan-3 .moment").startswith(told)
        page.locator("#speed").fill("1")
        button.click()
        expect(button).to_have_text(re.compile("^Pause"))
        page.clock.run_for(1_000)
        assert page.inner_text("#plan-3 .moment").startswith("first time: step ")


@needs_browser
def test_play_tells_how_each_episode_ends(browser: Browser, tmp_path):
    pytest.importorskip("gymnasium")
    page_file = mw.plan("gym:FrozenLake-v1", 2).report(tmp_path / "lake.html")
    run = page_data(page_file)["plans"][0]["runs"][0]
    words = {"goal": ", then the goal;", "hole": ", then the end (hole);"}
    with opened(browser, page_file.as_uri()) as page:
        assert "hole" in page.inner_text(".legend")
        page.locator("#speed").fill("7")
        page.clock.install()
        page.locator("#plan-1 [data-do=play]").click()
        page.clock.run_for(20_000)
        first, second = run["met"]
        told = page.inner_text("#plan-1 .moment")
        assert told.startswith(f"episode 2: step {second - first}{words[run['ends'][1]]}")


@needs_browser
def test_the_table_sorts(browser: Browser, rooms, report):
    with opened(browser, report.as_uri()) as page:
        heading = page.locator("#measures thead").get_by_role("button", name="steps to goal")
        heading.click()
        column = "[...document.querySelectorAll('#measures tbody tr')].map(row => Number(row.cells[3].dataset.value))"
        best_first = page.evaluate(column)
        assert best_first == sorted(best_first)
        heading.click()
        assert page.evaluate(column) == best_first[::-1]
        assert len(best_first) == rooms.k


@needs_browser
def test_the_choice_is_told_as_a_command(browser: Browser, report, rooms, tmp_path):
    with opened(browser, report.as_uri()) as page:
        page.locator("#plan-4").get_by_role("radio").check()
        assert "manyways export plans.mw policy.json --plan 4" in page.inner_text("#favourite")
        assert "plans.save" in page.inner_text("#favourite")
        page.get_by_role("button", name="Choose none").click()
        assert page.locator("#favourite").is_hidden()
        assert page.locator(".chosen").count() == 0
    saved = rooms.report(tmp_path / "plans.html", plans_file="my plans.mw")
    with opened(browser, saved.as_uri()) as page:
        page.locator("#plan-2").get_by_role("radio").check()
        assert "manyways export 'my plans.mw' policy.json --plan 2" in page.inner_text("#favourite")
        assert "plans.save" not in page.inner_text("#favourite")


@needs_browser
def test_a_distance_leads_to_the_two_plans(browser: Browser, report):
    with opened(browser, report.as_uri()) as page:
        page.get_by_role("button", name="Plans 3 and 6:").click()
        assert (page.input_value("#left"), page.input_value("#right")) == ("2", "5")


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1100])
def test_everyone_can_use_it(browser: Browser, report, scheme, width):
    with opened(browser, report.as_uri(), color_scheme=scheme, viewport={"width": width, "height": 780}) as page:
        page.locator("details").evaluate_all("(all) => all.forEach((one) => { one.open = true; })")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert nameless_controls(page) == []
        assert faint_texts(page) == []
        doubles = "[...document.querySelectorAll('[id]')].map(e => e.id).filter((id, i, all) => all.indexOf(id) !== i)"
        assert page.evaluate(doubles) == []
        small = """[...document.querySelectorAll('button, select, input')].filter(e => e.checkVisibility())
            .filter(e => { const box = (e.closest('label') || e).getBoundingClientRect(); return Math.min(box.width, box.height) < 24; }).map(e => e.outerHTML)"""
        assert page.evaluate(small) == []
        levels = page.evaluate("[...document.querySelectorAll('h1, h2, h3')].map(e => Number(e.tagName[1]))")
        assert levels[0] == 1
        assert all(later - earlier <= 1 for earlier, later in itertools.pairwise(levels))


@needs_browser
def test_faint_text_and_nameless_controls_would_be_found(browser: Browser):
    with opened(browser, "about:blank") as page:
        page.set_content("<p style='color: #999'>faint</p><button></button><p>plain</p><button>named</button>")
        assert [text.split(": ")[1] for text in faint_texts(page)] == ["faint"]
        assert nameless_controls(page) == ["button"]


@needs_browser
def test_nothing_jumps_while_it_loads(browser: Browser, report):
    with opened(browser, report.as_uri()) as page:
        page.mouse.wheel(0, 3000)
        page.wait_for_timeout(300)
        shift = page.evaluate(
            """() => new Promise((done) => { let sum = 0; new PerformanceObserver((list) => {
            for (const entry of list.getEntries()) if (!entry.hadRecentInput) sum += entry.value; }).observe({ type: 'layout-shift', buffered: true });
            setTimeout(() => done(sum), 200); })"""
        )
        assert shift < 0.1


@needs_browser
def test_names_are_shown_as_text_and_never_run(browser: Browser, nasty, tmp_path):
    with opened(browser, nasty.report(tmp_path / "nasty.html").as_uri()) as page:
        page.click("#play")
        expect(page.locator("#left-map li").nth(2)).to_be_visible()
        assert page.evaluate("window.hit") is None
        assert page.locator("img").count() == 0
        assert page.inner_text("h1") == f"3 ways: {nasty.mdp.name}"
        assert page.title() == f"3 ways: {nasty.mdp.name}"
        words = page.inner_text("#plans")
        assert NASTY in words
        assert QUOTED in words
        assert "{{ 7 * 7 }}" in words


@needs_browser
def test_two_hundred_plans_stay_responsive(browser: Browser, tmp_path):
    plans = mw.plan("rooms-9:0", k=200, tradeoff=8.0, method=mw.FrankWolfe(iterations=0))
    with opened(browser, plans.report(tmp_path / "many.html").as_uri()) as page:
        page.evaluate(
            """() => { window.longest = 0; let last = performance.now();
            const beat = (now) => { window.longest = Math.max(window.longest, now - last); last = now; requestAnimationFrame(beat); };
            requestAnimationFrame(beat); }"""
        )
        for _ in range(30):
            page.mouse.wheel(0, 2500)
            page.wait_for_timeout(20)
        page.locator("#plan-200").get_by_role("button", name="Compare").click()
        page.locator("#plan-199").get_by_role("button", name="Compare with plan 200").click()
        assert page.input_value("#left") == "199"
        page.locator("#measures thead").get_by_role("button", name="reward", exact=True).click()
        page.locator("#heat").hover(position={"x": 40, "y": 90})
        told = re.match(r"plans (\d+) and (\d+): ([\d.]+)", page.inner_text("#heat-text"))
        assert told is not None
        assert float(told[3]) == pytest.approx(plans.distances[int(told[1]) - 1, int(told[2]) - 1], abs=0.006)
        assert page.evaluate("window.longest") < 2_000


@needs_browser
def test_without_scripts_words_and_figures_remain(browser: Browser, rooms, report):
    with opened(browser, report.as_uri(), java_script_enabled=False) as page:
        assert "does not run" in page.inner_text("noscript")
        assert f"{rooms.rewards[0]:.4g}" in page.inner_text("#measures")


@needs_browser
def test_in_a_notebook_it_is_a_frame_that_works(browser: Browser, rooms):
    with opened(browser, "about:blank") as page:
        page.set_content(f"<p>before</p>{rooms._repr_html_()}")
        frame = page.frame_locator("iframe")
        assert frame.locator(".card").count() == 6
        frame.locator("#plan-2").get_by_role("button", name="Compare").click()
        frame.locator("#plan-4").get_by_role("button", name="Compare").click()
        assert frame.locator("#left-name").inner_text().startswith("Plan 2:")
