"""Ten thousand routes in a real browser: the page stays as small as the window, wherever one looks."""

from __future__ import annotations

import msgspec
import pytest

from console.answers import Told
from console.browser import Browser, Page
from console.fleets import LISTENER, make_fleet, spread
from console.serving import serving
from edgefast import ir
from edgefast.console import Console

pytestmark = [pytest.mark.wire, pytest.mark.timeout(300)]

ROW = ".tree .row"
MANY = 80  # elements: what fits into the window, and a little around it


def fleet() -> ir.Fleet:
    """10,000 routes: 8,000 on 2,000 hosts, and 2,000 on one."""
    wide, deep = spread(8000, 2000), spread(2000).virtual_hosts[0]
    rules = tuple(
        msgspec.structs.replace(one, route=one.route.replace("/r", "/deep")) for one in deep.rules
    )
    crowded = msgspec.structs.replace(deep, hostname="crowded.example.com", rules=rules)
    return make_fleet([*wide.virtual_hosts, crowded])


def lines(page: Page) -> int:
    """How many lines exist."""
    count = page.run(f"document.querySelectorAll('{ROW}').length")
    assert isinstance(count, int) and count < MANY
    return count


def test_ten_thousand_routes(browser: Browser) -> None:
    source = Told(fleet())
    with serving(lambda: Console(source).routes) as url, browser.page() as page:
        page.go(url)
        page.until(f"document.querySelector('{ROW} .name')?.textContent")
        page.until("document.querySelector('.counts').textContent.startsWith('10,000 routes')")

        page.click(f"{ROW}[data-id='l:{LISTENER}'] .name")
        page.until(f"document.querySelectorAll('{ROW}[data-kind=host]').length > 10")
        lines(page)
        page.run("document.querySelector('.tree').focus()")
        page.press("End")
        page.until(
            f"document.querySelector('{ROW}.active .name')?.textContent === 'h999.example.com'"
        )
        lines(page)
        page.run("document.querySelector('.tree').scrollTop = 34 * 1000")
        page.until(
            f"!document.querySelector('{ROW}.waiting')"
            f" && document.querySelectorAll('{ROW}[data-kind=host]').length > 10"
        )
        lines(page)

        page.write("#search", "deep1999")
        page.until("document.querySelectorAll('.hit').length === 1")
        page.click(".hit")
        page.until(f"document.querySelector('{ROW}[aria-selected=true]')")
        page.until("document.querySelector('.detail dl')?.textContent.includes('default/deep1999')")
        page.until(f"document.querySelector('{ROW}[aria-selected=true]')?.ariaSetSize === '2000'")
        lines(page)

        page.run("document.querySelector('#sort').value = 'requests'")
        page.run("document.querySelector('#sort').dispatchEvent(new Event('change'))")
        page.until(
            f"document.querySelector('{ROW}[data-kind=gateway]') && !document.querySelector('{ROW}.waiting')"
        )
        lines(page)
        assert page.complaints() == []
        answers = [one["response"] for one in page.events("Network.responseReceived")]
        assert max(int(one["headers"].get("content-length", 0)) for one in answers) < 100_000
