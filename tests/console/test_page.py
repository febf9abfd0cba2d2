"""The page in a real browser, on a real proxy: what people do with it, and what hostile text does to it (nothing)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from console.browser import Browser, Page
from origin.recording import RecordingOrigin
from wire.harness import objects as make
from wire.harness.ports import free_port
from wire.harness.site import Site

pytestmark = [pytest.mark.wire, pytest.mark.timeout(300)]

TREE = ".tree .row"
EVIL = "<img src=x onerror=window.hacked=1>\u202egnp.exe</script><script>window.hacked=1</script>"


def redirect(name: str, path: str, **more: Any) -> make.Object:
    """A route that answers by itself."""
    filters = [{"type": "RequestRedirect", "requestRedirect": {"hostname": "x.test"}}]
    matches = [{**make.path(path), **more}]
    return make.route(name, [{"matches": matches, "filters": filters}], ["www.shop.test"])


def evil_objects() -> list[make.Object]:
    """Objects with texts that would do harm, wherever the API lets an author choose."""
    header = {"name": "x-evil", "value": EVIL.replace("\u202e", "")}
    pattern = {"name": "q", "type": "RegularExpression", "value": EVIL.replace("\u202e", ".\u202e")}
    add = {"name": "x-out", "value": "<b>bold</b>"}
    return [
        redirect("evil-header", "/evil", headers=[header]),
        redirect("evil-query", "/evil", queryParams=[pattern]),
        make.route(
            "evil-filter",
            [
                {
                    **make.rule("web", matches=[make.path("/shout")]),
                    "filters": [
                        {"type": "RequestHeaderModifier", "requestHeaderModifier": {"add": [add]}}
                    ],
                }
            ],
            ["www.shop.test"],
        ),
    ]


@pytest.fixture(scope="module")
def origin() -> Iterator[RecordingOrigin]:
    """What stands behind."""
    with RecordingOrigin() as one:
        yield one


@pytest.fixture
def site(origin: RecordingOrigin, request: pytest.FixtureRequest) -> Iterator[Site]:
    """A proxy with some routes, one of them broken; a test of what has changed has one of its own."""
    objects = [
        *make.service("web", [("127.0.0.1", origin.port)]),
        *(
            make.route(
                f"r{n:03}",
                [make.rule("web", matches=[make.path(f"/p{n:03}")])],
                [f"h{n % 7}.shop.test"],
            )
            for n in range(150)
        ),
        make.route("lost", [make.rule("missing", matches=[make.path("/lost")])], ["h0.shop.test"]),
        *evil_objects(),
    ]
    one = Site(objects)
    one.alone = "change" in request.node.name
    with one:
        yield one


@pytest.fixture
def page(browser: Browser, site: Site) -> Iterator[Page]:
    """The console of that proxy; nothing may have been complained of at the end."""
    with browser.page(address(site)) as one:
        one.until(f"document.querySelector('{TREE} .name')?.textContent")
        yield one
        assert one.complaints() == []
        assert one.run("window.hacked") is None
        asked = [event["request"]["url"] for event in one.events("Network.requestWillBeSent")]
        assert asked and all(url.startswith(address(site)) for url in asked)


def address(site: Site) -> str:
    """Where the console is."""
    return f"http://{site.admin[0]}:{site.admin[1]}/console/"


def names(page: Page) -> Any:
    """The names of the lines that are there, from the top."""
    return page.run(
        f"[...document.querySelectorAll('{TREE}')]"
        ".sort((a, b) => a.getBoundingClientRect().y - b.getBoundingClientRect().y)"
        ".map((e) => e.querySelector('.name').textContent)"
    )


def choose(page: Page, id_: str) -> None:
    """Click a line."""
    page.click(f"{TREE}[data-id={json.dumps(id_)}] .name")


def find(page: Page, name: str) -> None:
    """Search for a route and open what is found, by keys."""
    page.write("#search", name)
    page.until(
        "document.querySelectorAll('.hit').length === 1"
        f" && document.querySelector('.hit').dataset.id.includes('/{name}|')"
    )
    page.press("Enter")
    page.press("Enter")
    page.until(f"document.querySelector('.detail dl')?.textContent.includes('{name}')")


def test_the_tree(page: Page, site: Site) -> None:
    listener = "l:default/web/http"
    page.until(f"document.querySelectorAll('{TREE}[data-kind=host]').length === 9")
    assert "default/web" in names(page) and "http" in names(page)
    page.run("document.querySelector('.tree').focus()")
    host = "h:default/web/http/h0.shop.test"
    choose(page, host)
    page.until("document.querySelector('.detail h2')?.textContent.includes('h0.shop.test')")
    page.until(f"document.querySelectorAll('{TREE}[data-kind=rule]').length > 5")
    row = f"{TREE}[data-id='{host}']"
    assert page.run(f"document.querySelector(\"{row}\").getAttribute('aria-expanded')") == "true"
    assert page.run(f"document.querySelector(\"{row}\").getAttribute('aria-level')") == "3"
    page.press("ArrowDown")
    page.press("ArrowDown")  # past the longest path, which has no backend
    page.press("Enter")
    page.until("document.querySelector('.detail h2').textContent.includes('/p')")
    assert page.run("document.querySelector('.tree').getAttribute('aria-activedescendant')")
    page.press("ArrowRight")
    page.until(f"document.querySelector('{TREE}[data-kind=backend]')")
    page.press("ArrowLeft")
    page.until(f"!document.querySelector('{TREE}[data-kind=backend]')")
    page.press("ArrowLeft")
    page.press("ArrowLeft")
    page.until(f"!document.querySelector('{TREE}[data-kind=rule]')")
    assert (
        page.run(f"document.querySelector(\"{TREE}[data-id='{listener}'] .mark\").dataset.state")
        == "bad"
    )


def test_numbers_are_live(page: Page, site: Site) -> None:
    page.until("document.querySelector('.card-rate .value').textContent === '0'")
    with site.client() as client:
        for _ in range(40):
            assert client.request("GET", "/p003", "h3.shop.test").status == 200
            client.request("GET", "/nothing", "h3.shop.test")
    page.until("parseFloat(document.querySelector('.card-rate .value').textContent) > 0")
    page.until("document.querySelector('.card-rate .note').textContent.includes('without a rule')")
    page.until("document.querySelector('.busy')?.textContent.includes('/p003')")
    page.click(".busy")
    page.until("document.querySelector('.detail .numbers')?.textContent.includes('40')")
    row = f"{TREE}[aria-selected=true]"
    page.until(f"document.querySelector('{row} .name')?.textContent === '/p003'")
    assert page.text(f"{row} .p99") != ""


def test_search_leads_to_the_line(page: Page) -> None:
    find(page, "r149")
    page.until(
        f"document.querySelector('{TREE}[aria-selected=true] .name')?.textContent === '/p149'"
    )
    page.until("document.querySelector('.detail h2')?.textContent.includes('/p149')")
    assert page.run("location.hash").startswith("#routes%3Dr%3A")
    page.write("#search", "there is none")
    page.until("document.querySelector('.found').textContent.includes('Nothing is called')")


def test_the_explain_box(page: Page, site: Site) -> None:
    with site.client() as client:  # a worker knows the health of what it has used
        client.request("GET", "/p003", "h3.shop.test")
    page.click("#tab-explain")
    page.write("#ask-url", f"http://h3.shop.test:{site.port}/p003/x")
    page.write("#ask-headers", "x-one: 1\nx-two: 2")
    page.click(".form .primary")
    page.until("document.querySelector('.verdict')?.dataset.state === 'good'")
    said = page.text(".view-explain .result")
    assert "goes to service/default/web/80" in said and "healthy" in said
    assert "HTTPRoute default/r003 spec.rules[0]" in said
    page.write("#ask-url", f"http://h3.shop.test:{site.port}/nowhere")
    page.press("Enter")
    page.until("document.querySelector('.verdict')?.dataset.state === 'bad'")
    assert "404" in page.text(".verdict")
    page.expected.append("status of 400")  # the browser logs the refusal by itself
    page.write("#ask-url", "http://")
    page.press("Enter")
    page.until("document.querySelector('.view-explain [role=alert]')")
    assert "is not a URL" in page.text(".view-explain [role=alert]")


def test_problems_and_workers(page: Page) -> None:
    page.until("document.querySelector('#tab-problems .badge').textContent === '1'")
    page.click("#tab-problems")
    page.until("document.querySelector('.grid-problems tbody td')")
    assert "BackendNotFound Service default/missing" in page.text(".grid-problems")
    page.click(".grid-problems summary")
    page.until("document.querySelector('.grid-problems .reason p')")
    assert "refers to a Service or Backend that does not exist" in page.text(
        ".grid-problems .reason"
    )
    assert "edgefast problem BackendNotFound" in page.text(".grid-problems .reason")
    page.click(".grid-problems .link")
    page.until(
        f"document.querySelector('{TREE}[aria-selected=true] .name')?.textContent === '/lost'"
    )
    page.until("document.querySelector('.detail .problem')")
    page.click("#only")
    page.until(f"document.querySelectorAll('{TREE}[data-kind=host]').length === 1")
    page.click("#tab-members")
    page.until("document.querySelector('.grid-members tbody')?.textContent.includes('worker 0')")
    page.press("ArrowRight")
    assert "listens on" in page.text(".facts")


def test_a_badge_leads_to_what_is_wrong_below(page: Page) -> None:
    """A host has no problem of its own: its badge is of its rules."""
    host = "h:default/web/http/h0.shop.test"
    page.click(f"{TREE}[data-id='{host}'] .mark")
    page.until("document.querySelector('.detail .problem')")
    assert "h0.shop.test" in page.text(".detail h2")
    assert "BackendNotFound Service default/missing" in page.text(".detail .problem")
    page.until(
        "(() => { const e = document.querySelector('.detail .problem').getBoundingClientRect(); return e.top >= 0 && e.bottom <= innerHeight; })()"
    )
    page.click(".detail .problem > .link")
    page.until(
        f"document.querySelector('{TREE}[aria-selected=true] .name')?.textContent === '/lost'"
    )
    page.until("document.querySelector('.detail h2')?.textContent.includes('/lost')")
    assert page.run("document.querySelector('.detail .problem > .link')") is None, "it is here"


#: What sticks out of the page, or has more in it than can be seen without moving it sideways.
OUTSIDE = """[...document.querySelectorAll('body *')].filter((e) => {
  if (!e.checkVisibility() || e.matches('.skip, input, textarea')) return false;
  const box = e.getBoundingClientRect();
  return box.width && (box.right > innerWidth + 0.5 || box.left < -0.5
    || (getComputedStyle(e).overflowX !== 'visible' && e.scrollWidth > e.clientWidth + 1));
}).map((e) => `${e.tagName}.${e.getAttribute('class')} ${e.textContent.slice(0, 40)}`)"""


@pytest.mark.parametrize("width", [360, 400])
def test_a_telephone(page: Page, site: Site, width: int) -> None:
    """Nothing moves sideways, nothing is cut off, and what one came for is above the numbers."""
    page.resize(width, 740)
    page.until(
        "getComputedStyle(document.querySelector('.tree')).getPropertyValue('--row') === '72px'"
    )
    page.click(f"{TREE}[data-id='h:default/web/http/h0.shop.test'] .name")
    page.until("document.querySelector('.detail .numbers')")
    for name in ("routes", "explain", "limits", "problems", "changes", "members"):
        page.click(f"#tab-{name}")
        page.until(f"!document.querySelector('#view-{name}').hidden")
        if name == "explain":
            page.write("#ask-url", f"http://h3.shop.test:{site.port}/p003/x")
            page.click(".form .primary")
            page.until("document.querySelector('.verdict')")
        if name in ("problems", "members"):
            page.until(f"document.querySelector('.grid-{name} tbody td')?.dataset.label")
        assert page.run("document.documentElement.scrollWidth") == width, name
        assert page.run(OUTSIDE) == [], name
        top = "document.querySelector('{}').getBoundingClientRect().top"
        assert page.run(f"{top.format('#main')} < {top.format('#stats')}"), name
        # The views' names have one line each at most, all six in sight.
        assert page.run(
            "[...document.querySelectorAll('.tabs button')].every((e) => e.offsetHeight < 45)"
        )
    page.click("#tab-routes")
    # Lines are where their height says, after the height has changed.
    page.until(f"[...document.querySelectorAll('{TREE}')].every((e) => e.offsetHeight === 72)")
    page.resize(1440, 900)
    page.until(f"document.querySelector('{TREE}').offsetHeight === 34")
    page.until("!document.querySelector('.tree-space').style.height.startsWith(String(72 * 10))")


def test_hostile_texts_are_text(page: Page, site: Site) -> None:
    choose(page, "h:default/web/http/www.shop.test")
    page.until(f"document.querySelectorAll('{TREE}[data-kind=rule]').length === 3")
    for name in ("evil-header", "evil-query", "evil-filter"):
        find(page, name)
        said = page.text(".detail")
        assert ("<img src=x" in said) or ("<b>bold</b>" in said)
        assert "\u202e" not in said
    find(page, "evil-query")
    page.until("document.querySelector('.detail').textContent.includes('\\\\u202e')")
    page.click("#tab-explain")
    page.write("#ask-url", f"http://www.shop.test:{site.port}/evil")
    page.write("#ask-headers", "x-evil: <svg onload=window.hacked=2>")
    page.click(".form .primary")
    page.until("document.querySelector('.candidates')")
    assert "<svg onload" in page.text(".candidates")
    assert (
        page.run("document.querySelectorAll('main img, main script, main b, main svg svg').length")
        == 0
    )


def test_a_change_is_told(page: Page, site: Site) -> None:
    page.click("#tab-changes")
    page.until("document.querySelector('.view-changes .empty')")
    site.apply([one for one in site.objects if one["metadata"]["name"] != "r005"])
    page.until("document.querySelector('.moves')")
    said = page.text(".view-changes .result")
    assert "no backend answers any more, from default/r005 rule 0" in said
    assert "break" in said and "rule default/r005 rule 0 removed" in said
    page.click(".moves .link")
    page.until("document.querySelector('.verdict')?.textContent.includes('404')")
    page.click("#tab-routes")
    page.until("document.querySelector('.counts').textContent.startsWith('154 routes')")


def test_themes(browser: Browser, site: Site) -> None:
    for theme, dark in (("light", False), ("dark", True)):
        with browser.page(address(site), theme=theme) as page:
            page.until("document.body.dataset.ready")
            background = "getComputedStyle(document.body).backgroundColor"
            is_dark = f"parseInt({background}.slice(4)) < 128"
            assert page.run(is_dark) is dark
            page.click("#theme")
            assert page.run(is_dark) is False
            page.click("#theme")
            assert page.run(is_dark) is True
            page.go(address(site))
            page.until("document.body.dataset.ready")
            assert page.run(is_dark) is True, "the choice is kept"


def test_a_process_that_went_away(browser: Browser, site: Site) -> None:
    with browser.page(address(site)) as page:
        page.until("document.body.dataset.ready")
        site.terminate()
        page.until("!document.querySelector('#lost').hidden")
        assert "tries again" in page.text("#lost")
        site.exit_status()
        site.start()
        page.until("document.querySelector('#lost').hidden")


def test_off_with_a_setting(browser: Browser, origin: RecordingOrigin) -> None:
    class Silent(Site):
        def __init__(self) -> None:
            super().__init__(make.simple(free_port(), [("127.0.0.1", origin.port)])[2:])
            self._arguments.append("--no-console")

    with Silent() as site:
        assert site.get(site.admin, "/console/")[0] == 404
        assert site.get(site.admin, "/dump")[0] == 200
