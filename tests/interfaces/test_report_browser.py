"""The report in a real browser: Chromium without a window, driven by selenium."""

import base64
import http.server
import json
import re
import shutil
import threading

import numpy as np
import pytest

import colonnade as co
from colonnade.interfaces.report.page import write_report

from problems import HOSTILE, noisy

pytestmark = pytest.mark.slow
PHONE, DESK = 360, 1200


@pytest.fixture(scope="module")
def browser():
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("chromium and chromium-driver are not installed: apt-get install chromium chromium-driver")
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: pip install '.[test]'")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield started
    started.quit()


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The address of a report with hostile names, served on loopback so that requests can be counted."""
    folder = tmp_path_factory.mktemp("report")
    _, o = noisy(np.random.default_rng(0), names=HOSTILE)
    command, name = "colonnade complete '</script><script>'", "</script><script>.csv"
    write_report(co.complete(o), folder / "r.html", command=command, name=name)

    class Handler(http.server.SimpleHTTPRequestHandler):
        asked = []  # noqa: RUF012

        def __init__(self, *arguments):
            super().__init__(*arguments, directory=folder)

        def do_GET(self):
            self.asked.append(self.path)
            super().do_GET()

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/r.html", Handler.asked
        server.shutdown()


def look(browser, page, width=DESK, scheme="light", media=""):
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width == PHONE}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(page[0])
    return browser.execute_script


def luminance(colour):
    """Relative luminance of rgb(r, g, b), as the guidelines for accessible pages define it."""
    share = np.array([float(x) for x in colour[colour.index("(") + 1 : -1].split(",")[:3]]) / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_it_renders_without_errors_and_asks_for_nothing(browser, page):
    browser.get_log("browser"), browser.get_log("performance")
    page[1].clear()
    script = look(browser, page)
    assert browser.title == "</script><script>.csv: report on the filled table"
    shown = script(
        "return [...document.querySelectorAll('svg.picture, svg.chart')].map(e => [e.getBoundingClientRect().width,"
        " e.getBoundingClientRect().height, e.querySelectorAll('path, use, circle, rect, line').length])"
    )
    assert len(shown) == 12 and all(width > 250 and height > 80 and parts > 5 for width, height, parts in shown)
    pictures = script("return [...document.querySelectorAll('img')].map(e => e.complete && e.naturalWidth > 0)")
    assert len(pictures) == 6 and all(pictures)
    assert script("return document.querySelectorAll('script:not([type])').length") == 1
    assert browser.get_log("browser") == [] and page[1] == ["/r.html"]
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    assert {url for url in sent if not url.startswith("data:")} == {page[0]}


def test_the_table_sorts(browser, page):
    script = look(browser, page)
    rows = "[...document.querySelectorAll('#table tbody tr')]"
    cells = f"return {rows}.map(r => parseFloat(r.cells[arguments[0]].dataset.sort))"
    for k in (1, 2, 4, 0):
        head = f"document.querySelectorAll('#table thead th')[{k}]"
        for direction, sign in (("ascending", 1), ("descending", -1)):
            script(f"{head}.querySelector('button').click()")
            values = np.array([-np.inf if v is None else v for v in script(cells, k)], float)
            steps = sign * values
            assert (steps[1:] >= steps[:-1]).all() and values.size > 5
            assert script(f"return {head}.getAttribute('aria-sort')") == direction
    assert script("return document.querySelectorAll('[aria-sort=ascending], [aria-sort=descending]').length") == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(browser, page, scheme):
    script = look(browser, page, scheme=scheme)
    page_colour = script("return getComputedStyle(document.body).backgroundColor")
    assert (luminance(page_colour) < 0.05) == (scheme == "dark")
    for selector in ("h1", "h2", "figcaption", "td", "svg.picture text", "svg.chart text"):
        name = "fill" if "text" in selector else "color"
        colour = script(f"return getComputedStyle(document.querySelector('{selector}')).{name}")
        assert contrast(colour, page_colour) >= 4.5, (selector, colour)
    card = script("return getComputedStyle(document.querySelector('pre')).backgroundColor")
    for selector in ("pre", ".word", ".verdict p:last-child", "dt", ".figure", "th button"):
        colour = script(f"return getComputedStyle(document.querySelector('{selector}')).color")
        assert contrast(colour, card) >= 4.5, (selector, colour)
    line = script("return getComputedStyle(document.querySelector('svg.picture [stroke=\"var(--main)\"]')).stroke")
    assert contrast(line, page_colour) >= 3


def test_it_fits_a_phone_and_paper(browser, page):
    script = look(browser, page, width=PHONE)
    assert script("return document.documentElement.scrollWidth") <= PHONE
    wide = "return [...document.querySelectorAll('svg, img')].map(e => e.getBoundingClientRect().right)"
    assert all(right <= PHONE for right in script(wide))
    script = look(browser, page, width=720, scheme="dark", media="print")
    assert script("return document.documentElement.scrollWidth") <= 720
    assert luminance(script("return getComputedStyle(document.body).backgroundColor")) > 0.9
    assert script("return getComputedStyle(document.querySelector('.scroll')).overflowX") == "visible"


def test_every_picture_and_head_has_a_name(browser, page):
    script = look(browser, page)
    names = script(
        "return [...document.querySelectorAll('svg:not([aria-hidden])')].map(e => e.getAttribute('aria-label'))"
    )
    assert len(names) == 14 and all(names)
    assert all(script("return [...document.querySelectorAll('img')].map(e => e.alt)"))
    script("document.querySelector('#table button').focus()")
    assert script("return document.activeElement.textContent") == "Column"


def test_the_first_screen_says_it_all(browser, page):
    script = look(browser, page)
    last = script("return document.querySelector('.next li:last-child').getBoundingClientRect().bottom")
    assert last < 900  # The height of the window: verdict, numbers and what to do are seen without scrolling.


def test_the_pointer_shows_row_column_value_and_interval(browser, page):
    script = look(browser, page)
    move = (
        "const image = document.querySelectorAll('#maps img')[1]; image.scrollIntoView({block: 'center'});"
        "const box = image.getBoundingClientRect(); const at = {bubbles: true,"
        " clientX: box.left + box.width * arguments[0], clientY: box.top + box.height * arguments[1]};"
        "image.dispatchEvent(new PointerEvent('pointermove', at)); return document.getElementById('tip').textContent"
    )
    rows, columns = script(
        "const f = JSON.parse(document.getElementById('facts').textContent); return [f.rows, f.columns]"
    )
    kinds = set()
    for j in range(0, len(columns), 3):
        text = script(move, (j + 0.5) / len(columns), 7.5 / len(rows))
        assert text.startswith(f"row {rows[7]}, column {columns[j]}: ")
        kinds.add(re.search(r": (known|filled), ", text).group(1))
        assert (" 90 % interval " in text) == (": filled, " in text)
    assert kinds == {"known", "filled"} and script("return document.getElementById('tip').hidden") is False
    tip = script(
        "const dot = document.querySelector('circle.dot'); dot.dispatchEvent(new PointerEvent('pointerover',"
        " {bubbles: true, clientX: 9, clientY: 9})); return document.getElementById('tip').textContent"
    )
    assert "true value" in tip and "90 % interval" in tip


def test_it_prints_on_four_pages_with_full_heads(browser, page):
    look(browser, page)
    paper = {"paperWidth": 8.27, "paperHeight": 11.69, "printBackground": True}
    pdf = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", paper)["data"])
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 4
    script = look(browser, page, width=720, media="print")
    heads = script("return [...document.querySelectorAll('#table thead th')].map(e => e.innerText)")
    assert heads[0] == "Column" and all(heads)  # Chromium does not repeat buttons on the next page: text must be there.
    assert script("return getComputedStyle(document.querySelector('#table button')).display") == "none"
