"""The page in a real browser: it opens from disk, compares, plays, sorts, and everyone can use it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import numpy as np
import pytest
from breadth_objective import Breadth
from page_files import page_data
from playwright.sync_api import Browser, Page, expect

import manyways as mw
from browser import NASTY, QUOTED, faint_texts, nasty_plans, needs_browser, opened, running_browser, serious_findings
from manyways.describe import survey_of
from manyways.formats.text_maps import world_from_rows
from manyways.gallery import example_file
from manyways.model.occupancy import state_occupancy
from manyways.report import Live, render, view_of


@pytest.fixture(scope="module")
def nasty() -> mw.PlanSet:
    return nasty_plans()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as browser:
        yield browser


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
        least = int(100 * rooms.rewards.min() / rooms.optimal_reward)
        assert page.inner_text("h1") == f"Six ways to the goal, each at least {least} % of the best"
        assert page.title() == f"{page.inner_text('h1')}: nine-rooms:7"
        assert page.locator(".card").count() == 6
        assert page.locator("#routes .way-line").count() == 6
        assert colours(page, "#difference") > 5
        assert asked == [report.as_uri()]
        cells = page.locator("table.heat td").all_inner_texts()[1:]
        wanted = [["·" if i == j else f"{x:.2f}" for j, x in enumerate(row)] for i, row in enumerate(rooms.distances)]
        assert cells == [text for row in wanted for text in row]


@needs_browser
def test_a_wall_that_is_crossed_is_still_a_wall(browser: Browser, tmp_path):
    """The shortest way leads through one: its colour there is not that of the floor behind."""
    world = world_from_rows(["S#.G", "...."], "crossing", correct_transition=1.0, wall_reward=-1.0)
    with opened(browser, mw.plan(world, 2, 0.0).report(tmp_path / "plans.html").as_uri()) as page:
        page.wait_for_timeout(200)
        brightness = page.evaluate(
            """() => { const c = document.querySelector('#left-map'), pen = c.getContext('2d');
            return [1, 2].map((i) => { const d = pen.getImageData((i + 0.5) * c.width / 4, c.height / 4, 1, 1).data; return d[0] + d[1] + d[2]; }); }"""
        )
        assert abs(brightness[0] - brightness[1]) > 20


@needs_browser
def shown_distance(page: Page) -> float:
    """Two digits of a number that the page has with four, so that it may be rounded twice."""
    return float(page.inner_text("#apart").split("distance ")[1].split()[0])


def test_compare_two_plans(browser: Browser, rooms, report):
    with opened(browser, report.as_uri()) as page:
        page.locator("#plan-2").get_by_role("button", name="Compare").click()
        page.locator("#plan-5").get_by_role("button", name="Compare").click()
        assert page.input_value("#left") == "1"
        assert page.input_value("#right") == "4"
        assert page.locator(".picked").count() == 0
        assert shown_distance(page) == pytest.approx(rooms.distances[1, 4], abs=0.0055)
        page.select_option("#right", "0")
        assert page.inner_text("#right-name").startswith("Plan 1:")
        assert shown_distance(page) == pytest.approx(rooms.distances[1, 0], abs=0.0055)
        # Point at the cell in which the left plan spends the most time that the right one does not.
        by_state = state_occupancy(rooms.mdp, rooms.occupancies)
        row, column = divmod(int(np.argmax(by_state[1] - by_state[0])), 19)
        box = page.locator("#difference").bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + (column + 0.5) * box["width"] / 19, box["y"] + (row + 0.5) * box["height"] / 19)
        shown = page.inner_text("#pointed")
        assert shown.startswith(f"row {row}, column {column}: ")
        one, other = (float(x) for x in re.findall(r"([\d.]+) %", shown))
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
        shown = page.inner_text("#left-moment")
        step = int(re.findall(r"^round 1: step (\d+);", shown)[0])
        assert 1 < step < min(run["met"][0] for run in runs)
        for side in ("left", "right"):
            shown, run = page.inner_text(f"#{side}-moment"), runs[int(page.input_value(f"#{side}"))]
            assert shown.startswith(f"round 1: step {step};")
            assert float(shown.rsplit(" ", 1)[1].replace("−", "-")) == pytest.approx(run["earned"][step - 1], rel=1e-3)
        page.clock.run_for(100)
        assert page.inner_text("#right-moment") == shown, "it moves on after a pause"
        page.click("#again-from-start")
        assert page.inner_text("#left-moment").startswith("round 1: step 1;")


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
        shown = f"round 2: reached the goal after {second - first - 1} steps;"
        assert page.inner_text("#moment").startswith(shown)
        page.locator("#speed").fill("1")
        button.click()
        expect(button).to_have_text(re.compile("^Pause"))
        page.clock.run_for(1_000)
        assert page.inner_text("#moment").startswith("round 1: step ")


@needs_browser
def test_play_shows_how_each_episode_ends(browser: Browser, tmp_path):
    pytest.importorskip("gymnasium")
    page_file = mw.plan("gym:FrozenLake-v1", 2).report(tmp_path / "lake.html")
    run = page_data(page_file)["plans"][0]["runs"][0]
    words = {"goal": ", then the goal;", "hole": ", then the end (hole);"}
    with opened(browser, page_file.as_uri()) as page:
        assert "hole" in page.inner_text(".readout")
        page.locator("#speed").fill("7")
        page.clock.install()
        page.locator("#plan-1 [data-do=play]").click()
        page.clock.run_for(20_000)
        first, second = run["met"]
        shown = page.inner_text("#moment")
        assert shown.startswith(f"episode 2: step {second - first}{words[run['ends'][1]]}")


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
def test_the_choice_is_shown_as_a_command(browser: Browser, report, rooms, tmp_path):
    with opened(browser, report.as_uri()) as page:
        page.locator("#plan-4").get_by_role("button", name="Choose").click()
        assert "manyways export plans.mw policy.json --plan 4" in page.inner_text("#plan-4 .handed")
        assert "plans.save" in page.inner_text("#plan-4 .handed")
        page.locator("#plan-4").get_by_role("button", name="Chosen").click()
        assert page.locator("#plan-4 .handed").is_hidden()
        assert page.locator(".chosen").count() == 0
    saved = rooms.report(tmp_path / "plans.html", plans_file="my plans.mw")
    with opened(browser, saved.as_uri()) as page:
        page.locator("#plan-2").get_by_role("button", name="Choose").click()
        assert "manyways export 'my plans.mw' policy.json --plan 2" in page.inner_text("#plan-2 .handed")
        assert "plans.save" not in page.inner_text("#plan-2 .handed")


@needs_browser
@pytest.mark.parametrize("randomised", [False, True])
def test_the_chosen_plan_is_handed_out_as_files(browser: Browser, rooms, tmp_path, randomised):
    """The files that the page makes by itself are those that `Policy.save` writes."""
    policies = np.repeat(rooms.policies[:1], 2, axis=0)
    if randomised:
        policies = 0.25 * policies + 0.75 * rooms.policies[1:2]
    plans = mw.plan(rooms.mdp, 3, 8.0, keep=policies)
    with opened(browser, plans.report(tmp_path / "plans.html").as_uri()) as page:
        page.locator("#plan-2").get_by_role("button", name="Choose").click()
        for ending in (".json", ".csv"):
            with page.expect_download() as download:
                page.locator("#plan-2 .handed").get_by_role("link", name=f"policy{ending}", exact=True).click()
            assert download.value.suggested_filename == f"nine-rooms-7-plan2{ending}"
            download.value.save_as(tmp_path / f"policy{ending}")
            found = mw.load_policy(tmp_path / f"policy{ending}", plans.mdp)
            np.testing.assert_array_equal(found.probabilities, plans.policies[1])


@needs_browser
def test_a_link_carries_the_choice(browser: Browser, report):
    with opened(browser, report.as_uri()) as page:
        page.locator("#plan-5").get_by_role("button", name="Choose").click()
        link = page.locator("#plan-5 .handed input").input_value()
        assert page.url == link
    with opened(browser, link) as page:
        assert page.locator("#plan-5").get_by_role("button", name="Chosen").is_visible()
        assert page.locator(".chosen").count() == 1


@needs_browser
def test_keyboards_skip_the_picture(browser: Browser, report):
    """The picture has a stop for each door that can be closed; the link leads behind them, to the first plan."""
    with opened(browser, report.as_uri()) as page:
        assert page.locator("#closed [tabindex]").count() > 3
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.closest('.card').id") == "plan-1"


@needs_browser
def test_one_plan_in_the_picture_by_pointer_and_keys(browser: Browser, rooms, report):
    lit = "[...document.querySelectorAll('#overview .way-line')].filter(e => !e.classList.contains('dim')).map(e => Number(e.dataset.of))"
    with opened(browser, report.as_uri()) as page:
        assert sorted(page.evaluate(lit)) == list(range(6))
        page.keyboard.press("4")
        assert page.evaluate(lit) == [3]
        assert page.get_attribute("#plan-4 .way", "aria-pressed") == "true"
        by_state = state_occupancy(rooms.mdp, rooms.occupancies)
        assert f"up to {100 * by_state[3].max():.1f} % of all steps" in page.inner_text("#heat-key")
        assert page.get_attribute("#heat-layer", "href").startswith("data:image/png")
        page.keyboard.press("Escape")
        assert len(page.evaluate(lit)) == 6
        page.locator("#plan-1 .way").focus()
        page.keyboard.press("ArrowDown")
        assert page.evaluate(lit) == [1]
        page.locator("#plan-6").hover()
        assert page.evaluate(lit) == [5]


@needs_browser
def test_the_routes_are_the_likely_ways(browser: Browser, rooms, report):
    """Each drawn line begins at the start and ends at the goal, and its length is about that of the way."""
    with opened(browser, report.as_uri()) as page:
        drawn = page.evaluate("""() => [...document.querySelectorAll('#overview .way-line')].map((group) => {
            const path = group.querySelector('.line'), length = path.getTotalLength(), scale = Number(document.getElementById('overview').dataset.scale);
            const at = (where) => { const p = path.getPointAtLength(where); return [p.x / scale, p.y / scale]; };
            return [Number(group.dataset.of), at(0), at(length), length / scale]; })""")
    start, goal = (divmod(int(np.argmax(mask)), 19) for mask in (rooms.mdp.start, rooms.mdp.labels["goal"]))
    for plan, first, last, length in drawn:
        path = survey_of(rooms).facts[plan].path
        for (x, y), (row, column) in ((first, start), (last, goal)):
            assert abs(x - column - 0.5) <= 0.5
            assert abs(y - row - 0.5) <= 0.5
        assert length == pytest.approx(len(path) - 1, rel=0.15)


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
        assert serious_findings(page) == []
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
def test_faint_text_and_serious_findings_would_be_found(browser: Browser):
    with opened(browser, "about:blank") as page:
        page.set_content("<p style='color: #999'>faint</p><button></button><p>plain</p><button>named</button>")
        assert [text.split(": ")[1] for text in faint_texts(page)] == ["faint"]
        assert any(found.startswith("button-name") for found in serious_findings(page))


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
        assert nasty.mdp.name in page.inner_text(".over")
        assert page.title().endswith(f": {nasty.mdp.name}")
        words = page.inner_text("#plans")
        assert NASTY in words
        assert QUOTED in words
        assert "{{ 7 * 7 }}" in words


@needs_browser
def test_maps_in_a_row_begin_at_one_height(browser: Browser, report):
    with opened(browser, report.as_uri(), viewport={"width": 1400, "height": 900}) as page:
        tops = "[...document.querySelectorAll('#compare canvas')].map((map) => map.getBoundingClientRect().top)"
        assert np.ptp(page.evaluate(tops)) < 1
        assert re.search(r"costs:\s+little\s+much$", page.inner_text("#change-figure figcaption"))


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_is_liked_a_little_is_seen(browser: Browser, report, scheme):
    with opened(browser, report.as_uri(), color_scheme=scheme) as page:
        ground, weak = page.evaluate("""[0, 0.05].map((value) => {
            const sheet = preferencePicture(new Float32Array(cells).fill(value), 1), free = walls.indexOf(0);
            return [...sheet.getContext('2d').getImageData(free % world.columns, Math.floor(free / world.columns), 1, 1).data]; })""")
        assert np.abs(np.subtract(ground, weak)).max() > 30


@needs_browser
def test_nothing_is_played_while_something_is_closed(browser: Browser, report):
    """The runs were drawn with everything open, so they would run straight through a closed door."""
    with opened(browser, report.as_uri()) as page:
        name = page.locator("[data-close]").first
        page.locator("#play-all").click()
        page.locator("table [data-close]").first.click()
        for button in ("#play-all", "#play", "#plan-1 [data-do=play]"):
            assert page.locator(button).is_disabled()
            assert "without the closure" in str(page.locator(button).get_attribute("title"))
        assert page.locator("#runners circle").count() == 0
        page.locator("table [data-close]").first.click()
        assert page.locator("#play-all").is_enabled()
        assert not page.locator("#play").get_attribute("title")
        assert name.get_attribute("aria-pressed") == "false"


@needs_browser
def test_a_cell_that_a_sentence_names_is_marked_on_the_map(browser: Browser, tmp_path):
    world = world_from_rows(["S....", ".###.", "....G"], "small")
    plans = mw.plan(world, 1)
    text = plans.report(tmp_path / "small.html").read_text()
    (tmp_path / "named.html").write_text(re.sub(r'(<p class="about">)[^<]*', r"\1Chooses at random in 'r2c3'.", text))
    with opened(browser, (tmp_path / "named.html").as_uri()) as page:
        page.locator(".cell-name").first.hover()
        box, picture = page.locator(".pointed-cell").bounding_box(), page.locator("#overview").bounding_box()
        assert box is not None
        assert picture is not None
        middle = box["x"] + box["width"] / 2 - picture["x"], box["y"] + box["height"] / 2 - picture["y"]
        assert middle == pytest.approx((3.5 * picture["width"] / 5, 2.5 * picture["height"] / 3), abs=3)
        page.locator("h1").hover()
        assert page.locator(".pointed-cell").count() == 0


@needs_browser
def test_on_paper_everything_is_there_and_fits(browser: Browser, tmp_path):
    plans = mw.plan(example_file("fleet.prism").as_posix() + "?const=W=3", 3, slack=0.1)
    page_file = plans.report(tmp_path / "fleet.html")
    with opened(browser, page_file.as_uri(), viewport={"width": 700, "height": 1000}) as page:
        page.emulate_media(media="print")
        assert page.evaluate("document.documentElement.scrollWidth") <= 700
        assert "Frank-Wolfe gap" in page.inner_text("#curious")
        assert all(page.locator(".card .words").nth(i).is_visible() for i in range(plans.k))


@needs_browser
def test_on_paper_nothing_asks_to_be_pressed(browser: Browser, report):
    with opened(browser, report.as_uri()) as page:
        asks = re.compile(r"\b(Press|press|Point|point at|Keys)\b")
        assert asks.search(page.inner_text("body"))
        page.emulate_media(media="print")
        assert asks.search(page.inner_text("main")) is None
        assert "luck" not in page.inner_text("#compare")


@needs_browser
def test_without_a_map_a_run_has_a_box_that_grows_when_it_is_played(browser: Browser, nasty, tmp_path):
    file = nasty.report(tmp_path / "nasty.html")
    with opened(browser, file.as_uri(), viewport={"width": 360, "height": 780}) as page:
        box = page.locator("#left-map")
        line = box.locator("li")
        assert box.bounding_box()["height"] < line.bounding_box()["height"] + 25
        assert line.evaluate("(line) => line.scrollWidth <= line.clientWidth"), "a long line wraps"
        page.click("#again-from-start")
        assert box.bounding_box()["height"] > 200


@needs_browser
def test_two_hundred_plans_are_grouped(browser: Browser, tmp_path):
    plans = mw.plan("rooms-9:0", k=200, tradeoff=8.0, method=mw.FrankWolfe(iterations=0))
    with opened(browser, plans.report(tmp_path / "many.html").as_uri()) as page:
        seen = "[...document.querySelectorAll('.card')].filter(card => card.checkVisibility()).length"
        assert page.locator(".card").count() == 200
        created = page.evaluate("document.querySelectorAll('*').length")
        assert created < 75 * 200, "the page reacts late if there is much to create"
        assert page.locator("canvas").count() <= 8, "maps of plans are drawn on demand"
        assert 1 < page.evaluate(seen) <= 8, "one plan of each group is seen first"
        page.keyboard.press("Escape")
        page.locator("details.group summary").first.click()
        assert page.evaluate(seen) > 8
        page.evaluate("document.querySelectorAll('details.group').forEach((group) => { group.open = true; })")
        page.locator("#plan-200").get_by_role("button", name="Compare").click()
        page.locator("#plan-199").get_by_role("button", name="Compare with plan 200").click()
        assert page.input_value("#left") == "199"
        page.get_by_text("The table of all 200 plans").click()
        page.locator("#measures thead").get_by_role("button", name="reward", exact=True).click()
        labels = page.locator(".heat-box .across").all_inner_texts()
        assert labels == ["1", *(str(number) for number in range(20, 201, 20))]
        middle = "(part) => { const box = part.getBoundingClientRect(); return box.left + box.width / 2; }"
        edge, width = page.locator("#heat").evaluate("(map) => [map.getBoundingClientRect().left, map.clientWidth]")
        assert page.locator(".heat-box .across").last.evaluate(middle) == pytest.approx(
            edge + 199.5 / 200 * width, abs=2
        )
        page.locator("#heat").hover(position={"x": 40, "y": 90})
        shown = re.match(r"plans (\d+) and (\d+): ([\d.]+)", page.inner_text("#heat-text"))
        assert shown is not None
        assert float(shown[3]) == pytest.approx(plans.distances[int(shown[1]) - 1, int(shown[2]) - 1], abs=0.006)
        page.focus("#heat")
        page.keyboard.press("ArrowDown")
        assert page.inner_text("#heat-text").startswith(f"plans 2 and 2: {plans.distances[1, 1]:.2f}")
        page.keyboard.press("2")
        assert page.get_attribute("#plan-2 .way", "aria-pressed") == "true"


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


@needs_browser
@pytest.mark.parametrize(("objective", "sent"), [(mw.MeanDivergence(2.0), 2.0), (Breadth(), None)], ids=str)
def test_the_form_sends_a_tradeoff_only_if_there_is_one(browser: Browser, objective, sent):
    """The live page with a server that only records what is asked."""
    plans, asked = mw.plan("four-rooms:1", 2, objective=objective), []
    page_text = render(view_of(plans), Live(1, ({"number": 1, "label": "plans.mw"},), {}, 0))
    state = {"server": "a", "set": 1, "last_event": 0, "job": None, "finished": None}

    def answer(route):
        path = route.request.url.removeprefix("http://page.test/").partition("?")[0]
        if path == "plan":
            asked.append(route.request.post_data_json)
            route.fulfill(json={"job": 1, "server": "a"})
        elif path == "state":
            route.fulfill(json=state)
        else:
            route.fulfill(body=page_text, content_type="text/html")

    with opened(browser, "about:blank") as page:
        page.route("http://page.test/**", answer)
        page.goto("http://page.test/")
        page.click("#replan")
        expect(page.locator("#trouble")).to_have_text("Planning was interrupted.")
    assert [request["tradeoff"] for request in asked] == [sent]
    assert asked[0]["k"] == 2
