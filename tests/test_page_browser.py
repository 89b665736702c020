"""The report page in a real browser: it loads nothing, complains of nothing, filters, opens, draws and prints."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.page import write_page
from conformance.records import Run
from tests.support import runs
from tests.support.large_runs import large_run
from tests.test_page import HOSTILE, records

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on the path")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
]  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS, timeout=120_000)
        except sync_api.Error as error:  # what a container lacks is no fault of the page
            pytest.skip(f"Chromium does not start here: {error.message.splitlines()[0]}")
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    run: Run = runs.run(folder, *large_run(records=2_000, implementations=4, seed=1))
    return write_page(run, folder / "report.html")


class Opened:
    """A page in a window of its own, with what it asked of the network and what it complained of."""

    def __init__(self, browser: Any, file: Path, **settings: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **settings})
        self.page = self.context.new_page()
        self.page.set_default_timeout(120_000)
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.route("**/*", self._decide)
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(file.as_uri())

    def _decide(self, route: Any) -> None:
        if route.request.url.startswith("file:"):
            route.continue_()
        else:
            self.requests.append(route.request.url)
            route.abort()

    def close(self) -> None:
        self.context.close()
        assert (self.requests, self.complaints) == ([], [])


@pytest.fixture
def opened(browser: Any, file: Path) -> Iterator[Any]:
    window = Opened(browser, file)
    yield window.page
    window.close()


def shown(page: Any, selector: str) -> int:
    return page.locator(f"{selector}:visible").count()


def test_it_begins_closed_and_a_number_opens_its_area(opened: Any) -> None:
    assert shown(opened, ".matrix .counts") == 4
    assert shown(opened, ".item") == 0
    opened.locator("tbody#i1 a.cell").first.click()
    assert shown(opened, "tbody#i1 .item") == 40, "the requirements of the area OUT"
    assert shown(opened, ".item") == 40
    opened.locator("tbody#i1 .name").click()
    assert shown(opened, ".item") == 150
    assert opened.locator("tbody#i1 .name").get_attribute("aria-expanded") == "true"


def test_a_failure_opens_with_its_picture(opened: Any) -> None:
    link = opened.locator(".card .links a").first
    link.click()
    item = opened.locator(f"[id='{link.get_attribute('href').removeprefix('#')}']")
    assert item.locator(".case").first.is_visible()
    with_picture = opened.locator(".item:has(.picture)").first
    opened.evaluate("id => { location.hash = id; }", with_picture.get_attribute("id"))
    picture = with_picture.locator(".picture").first
    picture.locator("svg").first.wait_for()
    assert picture.locator("figcaption").all_inner_texts() == ["visible keys", "expected", "got", "error ÷ budget"]
    assert picture.locator("svg").nth(3).locator("rect.worst").count() == 1
    assert re.match(
        r"row \d+, column \d+: r = .+, got .+, expected .+", picture.locator("svg").nth(3).locator("title").first.text_content()
    )
    assert "attention-conformance reproduce" in with_picture.locator(".reproduce code").first.inner_text()


def test_filters_by_text_outcome_implementation_and_area(opened: Any) -> None:
    opened.locator("#text").fill("att-mask-00 library-0-attention-1")
    opened.locator("#shown").get_by_text("9 of 600 results").wait_for()
    assert shown(opened, "tbody.implementation") == 1 and shown(opened, ".item") == 9
    opened.locator("#filters button[type=reset]").click()
    opened.locator(".item:visible").first.wait_for(state="hidden")
    assert opened.locator("#shown").inner_text() == ""
    opened.locator("#outcome").select_option("unexpected")
    opened.locator("#shown").get_by_text("results").wait_for()
    assert shown(opened, ".item") == shown(opened, ".item.unexpected") == opened.locator(".item.unexpected").count() > 0
    opened.locator("#outcome").select_option("WRONG_VALUE")
    opened.locator(".item.ERROR:visible").first.wait_for(state="hidden")
    assert shown(opened, ".item") == opened.locator(".item.WRONG_VALUE").count() > 0
    opened.locator("#outcome").select_option("")
    opened.locator("#implementation").select_option("library-0-attention-2")
    opened.locator("#area").select_option("POS")
    opened.locator("#shown").get_by_text("10 of 600 results").wait_for()
    assert shown(opened, ".item") == 10 and shown(opened, ".counts td[data-area]") == 1
    assert shown(opened, "#conventions tbody tr") == 1
    opened.locator("#text").fill("nothing has this in it")
    opened.get_by_text("Nothing matches.").wait_for()


def test_failures_are_filtered_by_dtype(browser: Any, tmp_path: Path) -> None:
    outcomes = ({"float64": "WRONG_VALUE"}, {"float64": "WRONG_VALUE", "float16": "ERROR"}, {"float64": "PASS"})
    named = [f"ATT-OUT-{number:03}" for number in (1, 2, 3)]
    items = [
        runs.item("fine", name, dtypes=runs.in_dtypes(**found), **({} if "PASS" in found.values() else runs.FAILS))
        for name, found in zip(named, outcomes, strict=True)
    ]
    window = Opened(browser, write_page(runs.run(tmp_path, runs.header(["fine"], named), *items), tmp_path / "report.html"))
    for dtype, number in (("float64", 2), ("float16", 1)):
        window.page.locator("#dtype").select_option(dtype)
        window.page.locator("#shown").get_by_text(f"{number} of 3 results").wait_for()
        assert shown(window.page, ".item") == number
    window.close()


def test_it_is_usable_by_keyboard(opened: Any) -> None:
    opened.keyboard.press("Tab")
    assert opened.evaluate("document.activeElement.textContent") == "Skip to the results"
    opened.keyboard.press("Enter")
    opened.locator("tbody#i0 .name").focus()
    opened.keyboard.press("Enter")
    assert shown(opened, "tbody#i0 .item") == 150
    outline = opened.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid", "what has the focus is seen"
    summary = opened.locator("tbody#i0 .item summary").first
    summary.focus()
    opened.keyboard.press("Enter")
    assert shown(opened, "tbody#i0 .case") > 0
    opened.keyboard.press("Escape")
    assert shown(opened, "tbody#i0 .case") == 0 and opened.evaluate("document.activeElement.tagName") == "SUMMARY"
    opened.keyboard.press("Escape")
    assert shown(opened, ".item") == 0 and opened.evaluate("document.activeElement.className") == "name"


def test_light_and_dark_follow_the_system_until_chosen(browser: Any, file: Path) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    light, dark = Opened(browser, file, color_scheme="light"), Opened(browser, file, color_scheme="dark")
    first, second = light.page.evaluate(background), dark.page.evaluate(background)
    assert first != second
    assert light.page.evaluate("getComputedStyle(document.querySelector('.plot text')).fill") != dark.page.evaluate(
        "getComputedStyle(document.querySelector('.plot text')).fill"
    )
    dark.page.locator("#theme").click()
    assert dark.page.evaluate(background) == first
    assert dark.page.locator("#theme").get_attribute("aria-label") == "Colours: light"
    light.close()
    dark.close()


def test_a_phone_need_not_scroll_sideways(browser: Any, file: Path) -> None:
    window = Opened(browser, file, viewport={"width": 375, "height": 800})
    window.page.evaluate("id => { location.hash = id; }", window.page.locator(".item:has(.picture)").first.get_attribute("id"))
    window.page.locator(".panels svg").first.wait_for()
    assert window.page.evaluate("document.documentElement.scrollWidth") == 375
    assert window.page.locator(".plot svg").first.bounding_box()["width"] <= 375
    window.close()


def test_paper_shows_the_unexpected_failures(opened: Any) -> None:
    opened.evaluate("dispatchEvent(new Event('beforeprint'))")
    opened.emulate_media(media="print")
    assert shown(opened, ".item.unexpected .case") == opened.locator(".item.unexpected").count()
    assert shown(opened, ".item.passed") == shown(opened, ".filters") == shown(opened, "header.top") == 0
    assert shown(opened, ".panels svg") > 0
    opened.emulate_media(media="screen")
    opened.evaluate("dispatchEvent(new Event('afterprint'))")
    assert shown(opened, ".item") == 0, "as before"
    assert opened.pdf().startswith(b"%PDF")


def test_without_scripts_all_of_it_is_there(browser: Any, file: Path) -> None:
    window = Opened(browser, file, java_script_enabled=False)
    assert shown(window.page, ".item") == 600
    assert shown(window.page, ".filters") == 0
    window.close()


def test_hostile_names_are_shown_and_run_nothing(browser: Any, tmp_path: Path) -> None:
    run = runs.run(tmp_path, *records(f"{HOSTILE.translate({0: None, 27: None})}{'x' * 4_000}"))
    window = Opened(browser, write_page(run, tmp_path / "report.html"), viewport={"width": 375, "height": 800})
    said: list[str] = []
    window.page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    assert window.page.locator("tbody#i1 .name").inner_text().startswith("</script><script>alert('x')</script>")
    window.page.locator("#implementation").select_option(index=2)
    window.page.locator("#shown").get_by_text("4 of 8 results").wait_for()
    assert said == []
    window.page.evaluate("document.querySelectorAll('#results details').forEach(details => { details.open = true; })")
    assert window.page.evaluate("document.documentElement.scrollWidth") == 375, "long names are broken"
    window.close()
