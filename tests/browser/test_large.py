"""What stays cheap when there is much of it: 100,000 runs in a list, and a picture of 50,000 calls."""

from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

from playwright.async_api import Page, expect

from rota import Rota
from tests.browser.conftest import OpenRoom, World

RUNS = 100_000
PART = 20_000
"""Runs in one answer: the service gives at most 500, and 200 answers would only take longer to read."""
MOST = 60
"""Rows that may exist at once."""
THROUGH = """async steps => {
    const every = new Set(), wrong = [];
    let most = 0;
    const places = Array.from({length: steps + 1}, (_, n) => n / steps);
    for (const place of [...places, ...places.reverse(), 0.5, 0, 1]) {
        window.scrollTo(0, place * document.body.scrollHeight);
        await new Promise(requestAnimationFrame);
        await new Promise(requestAnimationFrame);
        const rows = [...document.querySelectorAll("table.runs tbody tr")];
        most = Math.max(most, rows.length);
        for (const row of rows) every.add(row);
        const shown = rows.filter(row => !row.classList.contains("spacer"));
        const numbers = shown.map(row => Number(row.querySelector(".c-key").textContent.slice(4)));
        if (numbers.some((number, place) => number !== numbers[0] + place)) wrong.push(numbers);
        const edges = shown.map(row => row.getBoundingClientRect());
        const seen = edges.filter(edge => edge.bottom > 0 && edge.top < innerHeight);
        if (seen.length < (innerHeight - 200) / 30) wrong.push(`${seen.length} rows on the screen`);
    }
    return {every: every.size, most, wrong, end: [...document.querySelectorAll("tbody tr")].at(-1).textContent};
}"""
"""Scroll down and up through all rows. `every`: the elements that were rows at some time; `wrong`: rows that are not
one after the other, or not on the screen."""


MULTIPLY = """([runs, part]) => {
    const ask = window.fetch;
    window.fetch = async (address, options) => {
        const url = new URL(address, location.href);
        if (!url.pathname.endsWith("/api/v1/runs")) return ask(address, options);
        const from = Number(url.searchParams.get("cursor")), to = Math.min(runs, from + part), items = [];
        url.searchParams.delete("cursor");
        const found = await (await ask(url, options)).json();
        const {policy, headers, ...run} = found.items[0];
        for (let n = from; n < to; n += 1) items.push({...run, id: `${run.id.slice(0, 20)}-${n}`, key: `key-${n}`});
        const text = JSON.stringify({...found, items, next: to < runs ? String(to) : null});
        return new Response(text, {headers: {"Content-Type": "application/json"}});
    };
}"""
"""Let the page read the one run of the service many times, each time with another id and key."""


async def a_list(open_room: OpenRoom, runs: int) -> Page:
    app = Rota("memory://")

    @app.task
    async def mail(to: str) -> None: ...

    room = await open_room(app, works=False)
    await mail.using(delay=3600).submit("ada")
    page = await room.page.context.new_page()  # what is done to it stays with it
    await page.add_init_script(f"({MULTIPLY})([{runs}, {PART}])")
    await page.goto(f"{room.url}/runs?task=mail")
    tally = page.locator("main [role=status]").first
    while (text := await tally.inner_text()) != f"{runs:,} runs":
        await page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
        await expect(tally).not_to_have_text(text)
    return page


async def test_a_list_of_100_000_runs_has_no_more_rows_than_the_screen_has_places(open_room: OpenRoom) -> None:
    page = await a_list(open_room, RUNS)
    found = await page.evaluate(THROUGH, 30)
    assert found["wrong"] == []
    assert f"key-{RUNS - 1}" in found["end"]
    assert found["most"] <= MOST
    assert found["every"] <= MOST + 2, "rows are used again; the two others hold the place of all rows above and below"


async def test_the_focus_does_not_go_to_another_run_with_a_row_that_is_used_again(open_room: OpenRoom) -> None:
    page = await a_list(open_room, 2_000)
    await page.evaluate("window.scrollTo(0, 0)")
    box = page.get_by_role("row").filter(has=page.get_by_text("key-3", exact=True)).get_by_role("checkbox")
    await box.focus()
    await page.keyboard.press("Space")
    await expect(box).to_be_checked()
    await page.evaluate("window.scrollTo(0, 30 * 1_000)")
    await expect(page.get_by_text("key-1000", exact=True)).to_be_visible()
    assert await page.locator("tbody :focus, tbody :checked").count() == 0
    await page.evaluate("window.scrollTo(0, 0)")
    await expect(box).to_be_checked()


COUNT = """() => {
    window.drawn = 0;
    const get = HTMLCanvasElement.prototype.getContext;
    HTMLCanvasElement.prototype.getContext = function (...given) { window.drawn += 1; return get.apply(this, given); };
}"""

DRAWN = """new Promise(done => {
    const look = () => window.drawn ? done() : requestAnimationFrame(look);
    look();
})"""
"""Wait until the picture is drawn. `wait_for_function` would evaluate text, which the CSP forbids."""


async def test_the_time_line_is_not_drawn_again_while_the_pointer_moves(full: World) -> None:
    now = datetime.now(UTC)
    past = urlencode({"from": (now - timedelta(hours=1)).isoformat(), "to": now.isoformat(), "folds": "no"})
    async with full.page(f"/timeline?{past}") as room:  # what happens from now on does not change the picture
        page = room.page
        await expect(page.locator(".demand")).to_be_visible()
        edge = await page.locator("canvas").bounding_box()
        assert edge is not None
        await page.evaluate(COUNT)
        for x in range(0, 200, 20):
            await page.mouse.move(edge["x"] + x, edge["y"] + 12)
        await page.mouse.down()
        for x in range(200, 400, 20):
            await page.mouse.move(edge["x"] + x, edge["y"] + 12)
        await expect(page.locator(".brushed")).to_be_visible()
        brushed = await page.locator(".brushed").bounding_box()
        assert brushed is not None
        assert (round(brushed["x"] - edge["x"]), round(brushed["width"])) == (180, 200)
        assert await page.evaluate("window.drawn") == 0
        await page.set_viewport_size({"width": 1000, "height": 800})
        await page.evaluate(DRAWN)
