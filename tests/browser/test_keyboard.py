"""Without a mouse: Tab reaches everything that can be pressed, in the order of the page, and shows where it is."""

import pytest
from playwright.async_api import expect

from tests.browser.conftest import World
from tests.browser.test_pages import settled
from tests.browser.world import PLACES

CAN_BE_PRESSED = "a[href], button:not(:disabled), input:not([type=radio]), select, textarea, summary"
BEGIN = """wanted => {
    window.expected = [...document.querySelectorAll("main")].flatMap(main => [...main.querySelectorAll(wanted)])
        .filter(each => each.checkVisibility({visibilityProperty: true}) && each.tabIndex >= 0);
    window.reached = [];
    document.addEventListener("focusin", ({target}) => {
        const {outlineStyle, outlineWidth} = getComputedStyle(target);
        window.reached.push({target, shown: outlineStyle !== "none" && parseFloat(outlineWidth) >= 2});
    });
    document.querySelector("main").focus();
    return window.expected.length;
}"""
"""Note what the focus should reach, and what it reaches from now on."""
FOUND = """() => {
    const inside = window.reached.filter(({target}) => target.closest("main") && target.tagName !== "MAIN");
    const name = each => each.outerHTML.slice(0, 120);
    const left = window.expected.filter(each => each.isConnected);
    const order = inside.map(({target}) => target).filter(each => each.isConnected);
    const back = order.filter((each, at) => at && order[at - 1].compareDocumentPosition(each) & 2);
    return {
        missed: left.filter(each => !inside.some(({target}) => target === each)).map(name),
        unseen: inside.filter(({shown}) => !shown).map(({target}) => name(target)),
        back: back.map(name),
    };
}"""
"""What the focus has not reached, where nobody sees it, and where it went back."""
OUT = "document.activeElement.closest('main') === null"
MOST = 400


@pytest.mark.parametrize("name", ["Now", "Runs", "Run", "Why?", "Schedules", "Task", "Flow"])
async def test_the_tab_key_reaches_everything_in_order_and_shows_where_it_is(full: World, name: str) -> None:
    async with full.page(PLACES[name]) as room:
        page = room.page
        await settled(page)
        await expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()
        await page.keyboard.press("p")  # nothing comes and goes meanwhile
        assert await page.evaluate(BEGIN, CAN_BE_PRESSED) > 3
        for _ in range(MOST):
            await page.keyboard.press("Tab")
            if await page.evaluate(OUT):
                break
        assert await page.evaluate(FOUND) == {"missed": [], "unseen": [], "back": []}
