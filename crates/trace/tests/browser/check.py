"""The profile's page in a real browser: it opens, its links work, it says nothing on the console, it asks for no network.

Usage: check.py WARPLOOM FOLDER
Makes pages with the command, looks at them at several sizes, and leaves pictures in the folder.
"""

import pathlib
import subprocess
import sys

from playwright.sync_api import sync_playwright

BROWSERS = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"]
MOST_BYTES = 2_000_000


def make(warploom, folder):
    """Pages of the examples, one of them compared with an earlier profile."""
    examples = pathlib.Path(__file__).resolve().parents[4] / "examples"
    pages = {}
    for name in sorted(p.parent.name for p in examples.glob("*/*.toml")):
        page = folder / f"{name}.html"
        command = [warploom, "profile", examples / name / f"{name}.toml", "--html", page, "--lines", "3"]
        if name == "matmul":
            before = folder / "before.wltr"
            old = [warploom, "profile", command[2], "--opt-level", "1", "--trace", before, "--csv"]
            subprocess.run(old, check=True, stdout=subprocess.DEVNULL)
            command += ["--compare", before, "--flamegraph", folder / "matmul.svg", "--sample", "64"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        assert page.stat().st_size < MOST_BYTES, f"{page} has {page.stat().st_size} bytes"
        pages[name] = page
    return pages


class Tab:
    """A tab that remembers everything that went wrong in it."""

    def __init__(self, browser, page, width, height, scheme="light"):
        self.tab = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        self.wrong = []
        self.tab.on("console", lambda m: self.wrong.append(m.text) if m.type in ("error", "warning") else None)
        self.tab.on("pageerror", lambda e: self.wrong.append(str(e)))
        self.tab.on("request", lambda r: None if r.url.startswith("file:") else self.wrong.append(r.url))
        self.tab.goto(page.as_uri())
        self.name = f"{page.stem}-{width}-{scheme}" if page.suffix == ".html" else page.name

    def end(self, folder, full_page=True):
        over = self.tab.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert over <= 0, f"{self.name} is {over} pixels too wide"
        self.tab.evaluate("scrollTo(0, 0)")
        self.tab.screenshot(path=folder / f"{self.name}.png", full_page=full_page, timeout=90_000)
        assert not self.wrong, f"{self.name}: {self.wrong}"
        self.tab.close()

    def count(self, selector):
        return self.tab.locator(selector).count()

    def text(self, selector):
        return self.tab.locator(selector).first.inner_text()


def panes(t):
    """Rows of the three panes are linked, and stalls lead to their causes."""
    for pane in ("source", "ptx", "machine"):
        assert t.count(f"#list-{pane} .row") > 3, pane
    assert t.count("#list-source .row.sel") == 1, "the hottest line is selected"
    assert t.count("#list-ptx .row.linked") > 0 and t.count("#list-machine .row.linked") > 0
    # A click on a waiting instruction's bar goes to the instruction that it waits for.
    bar = t.tab.locator("#list-machine .row:has(i) >> nth=0")
    rows = t.tab.locator("#list-machine .row")
    jumped = False
    for n in range(rows.count()):
        piece = rows.nth(n).locator("i").first
        if rows.nth(n).locator("i").count() == 0:
            continue
        rows.nth(n).click(position={"x": 5, "y": 5})
        if t.count("#detail .jump") == 0:
            continue
        selected = t.text("#list-machine .row.sel .no")
        t.tab.locator("#detail .jump").first.click()
        after = t.text("#list-machine .row.sel .no")
        if after != selected:
            t.tab.keyboard.press("Backspace")
            assert t.text("#list-machine .row.sel .no") == selected, "Backspace goes back"
            jumped = True
            break
    assert jumped and bar.count() == 1, "a stall leads to its cause"
    assert piece.evaluate("e => getComputedStyle(e).cursor") == "pointer"


def keys(t):
    t.tab.locator("#list-source").focus()
    t.tab.keyboard.press("Home")
    first = t.text("#list-source .row.sel .no")
    t.tab.keyboard.press("ArrowDown")
    assert t.text("#list-source .row.sel .no") != first
    t.tab.keyboard.press("n")
    hottest = t.text("#list-source .row.sel .pc")
    t.tab.keyboard.press("n")
    second = t.text("#list-source .row.sel .pc")
    assert float(hottest.split()[0]) >= float(second.split()[0]), (hottest, second)
    t.tab.keyboard.press("ArrowRight")
    assert t.tab.evaluate("document.activeElement.id") == "list-ptx"
    before = t.tab.evaluate("getComputedStyle(document.body).backgroundColor")
    t.tab.keyboard.press("t")
    assert t.tab.evaluate("getComputedStyle(document.body).backgroundColor") != before
    t.tab.keyboard.press("t")
    t.tab.keyboard.press("?")
    assert t.tab.locator("#keys").is_visible()
    t.tab.keyboard.press("Escape")


def charts(t):
    assert t.count("#states-chart .state") > 3
    t.tab.locator("#states-chart .state").first.click()
    assert t.tab.locator("#filter").is_visible()
    t.tab.locator("#filter button").click()
    t.tab.locator("#states-chart .state").first.hover()
    assert "warp-cycles" in t.text("#tip")
    assert t.count("#timeline svg path") > 3 and t.count("#timeline canvas") == 1
    assert t.tab.locator("#memory-chart").inner_text().count("found") == 2
    for measure in ("stalls", "x", "sectors"):
        t.tab.locator("#measure").select_option(measure)
    t.tab.locator("#measure").select_option("all")


def main(warploom, folder):
    folder.mkdir(parents=True, exist_ok=True)
    pages = make(warploom, folder)
    path = next(b for b in BROWSERS if pathlib.Path(b).exists())
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for name, page in pages.items():
            t = Tab(browser, page, 1280, 900)
            panes(t)
            keys(t)
            charts(t)
            if t.count("#launch option") > 1:
                t.tab.locator("#launch").select_option("1")
                assert t.count("#list-machine .row") > 5
            if name == "matmul":
                assert "compared" in t.text("#subtitle") and t.count("#numbers-list tr") > 10
                t.tab.locator("#measure").select_option("samples")
                t.tab.locator("#measure").select_option("all")
            t.end(folder)
        for width, scheme in ((1280, "dark"), (400, "light"), (400, "dark")):
            t = Tab(browser, pages["matmul"], width, 800, scheme)
            if width == 400:
                t.tab.get_by_role("tab", name="Machine code").click()
                assert t.tab.locator("#pane-machine").is_visible() and not t.tab.locator("#pane-ptx").is_visible()
                t.tab.get_by_role("tab", name="Source").click()
            t.end(folder)
        t = Tab(browser, folder / "matmul.svg", 1280, 600)
        wide = "() => +document.querySelectorAll('g.b rect')[1].getAttribute('width')"
        before = t.tab.evaluate(wide)
        t.tab.locator("g.b").nth(1).click()
        assert t.tab.evaluate(wide) > before, "a click widens a box"
        t.end(folder, full_page=False)
        browser.close()
    print(f"browser: {len(pages)} pages, no errors")


main(sys.argv[1], pathlib.Path(sys.argv[2]).resolve())
