"""Lists and the address of the page in a real browser: what is left of them when the process or a hand changes them."""

from __future__ import annotations

import pytest

from console.answers import Told
from console.browser import Browser
from console.fleets import spread
from console.serving import serving
from edgefast.console import Console
from edgefast.diagnostics.problem import Problem

pytestmark = [pytest.mark.wire, pytest.mark.timeout(300)]


def tell(number: int) -> list[Problem]:
    """So many problems."""
    return [Problem(None, "admin", "Invalid", f"problem {one}") for one in range(number)]


def test_a_list_that_shrinks_below_the_page_that_is_seen(browser: Browser) -> None:
    source = Told(spread(3))
    source.told_problems = tell(150)
    with serving(lambda: Console(source).routes) as url, browser.page(f"{url}#problems") as page:
        rows = "document.querySelectorAll('.grid-problems tbody tr').length"
        page.until(f"{rows} === 100")
        page.run("[...document.querySelectorAll('.view-problems button')].at(-1).click()")
        page.until(f"{rows} === 50")
        source.told_problems = tell(30)
        page.until(f"{rows} === 30")
        assert page.complaints() == []


def test_an_address_that_is_no_address(browser: Browser) -> None:
    source = Told(spread(3))
    with serving(lambda: Console(source).routes) as url, browser.page(f"{url}#%") as page:
        page.until("document.body.dataset.ready")
        assert page.run("document.querySelector('#tab-routes').ariaSelected") == "true"
        assert page.complaints() == []
