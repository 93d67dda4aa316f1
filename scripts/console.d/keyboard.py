"""The same without a mouse: every step by keys, with a focus that can be seen and that is never lost."""

from playwright.sync_api import expect

from browser import GONE, tab

# More stops than any page of the console has.
MOST_STOPS = 60


def keyboard_alone(browser, env):
    """Signs in, creates, opens, escapes from and confirms a dialog, and deletes with keys only."""
    sample = env.sample
    with tab(browser, sample.url, allowed=[GONE]) as desk:
        page, keys = desk.page, desk.page.keyboard
        page.goto(sample.url + "/console")
        expect(page.get_by_label("Token")).to_be_focused()
        keys.type(sample.token)
        keys.press("Enter")
        desk.heading("Instances")
        desk.live()
        walk_to(page, "Create an instance")
        keys.press("Enter")
        desk.heading("Create an instance")
        expect(page.get_by_label("Image").locator("option")).not_to_have_count(0)
        walk_to(page, "Name")
        keys.type("keys-1")
        walk_to(page, "Create")
        keys.press("Enter")
        desk.heading("keys-1")
        desk.badge("Running")
        desk.announced("keys-1: Running")

        walk_to(page, "Stop")
        keys.press("Space")
        desk.badge("Stopped")
        expect(page.get_by_role("button", name="Stop")).to_be_focused()
        walk_to(page, "Change…")
        keys.press("Enter")
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_label("Flavor")).to_be_focused()
        stays_inside(page)
        keys.press("Escape")
        expect(dialog).to_have_count(0)
        expect(page.get_by_role("button", name="Change…")).to_be_focused()

        walk_to(page, "Delete…")
        keys.press("Enter")
        expect(page.get_by_role("button", name="Keep it")).to_be_focused()
        stays_inside(page)
        walk_to(page, "I consent to losing")
        keys.press("Space")
        walk_to(page, "Delete keys-1")
        keys.press("Enter")
        desk.heading("keys-1 is deleted")
        expect(page.get_by_role("heading", level=1)).to_be_focused()


def skip_link(browser, env):
    """The first stop leads past the header."""
    sample = env.sample
    with tab(browser, sample.url, sample.token) as desk:
        desk.heading("Instances")
        desk.page.reload()
        desk.live()
        desk.page.locator(".skip").focus()
        expect(desk.page.locator(".skip")).to_be_in_viewport()
        desk.page.keyboard.press("Enter")
        expect(desk.page.get_by_role("heading", level=1)).to_be_focused()
        assert desk.page.url.endswith("#/instances"), desk.page.url


NAME = """() => {
    const focused = document.activeElement;
    const label = focused.labels?.[0]?.textContent ?? '';
    return focused === document.body ? '' : focused.getAttribute('aria-label') ?? (label || focused.textContent);
}"""
IS_VISIBLE = """() => {
    const focused = document.activeElement;
    const { outlineStyle, outlineWidth } = getComputedStyle(focused);
    const box = focused.getBoundingClientRect();
    return focused === document.body || (outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2 && box.width > 0 && box.height > 0);
}"""


def walk_to(page, name):
    """Presses Tab until something with this name has the focus. Every stop on the way has to be visible."""
    seen = []
    for _ in range(MOST_STOPS):
        page.keyboard.press("Tab")
        focused = page.evaluate(NAME)
        seen.append(focused)
        assert page.evaluate(IS_VISIBLE), f"the focus cannot be seen on {focused!r}"
        if focused == name or (len(name) > 12 and focused.startswith(name)):
            return
    raise AssertionError(f"Tab does not reach {name!r}: {seen}")


def stays_inside(page):
    """Tab does not leave an open dialog, except for the browser's own controls."""
    inside = "document.activeElement === document.body || document.activeElement.closest('dialog') !== null"
    stops = set()
    for _ in range(15):
        page.keyboard.press("Tab")
        assert page.evaluate(inside), f"the focus has left the dialog: {page.evaluate(NAME)}"
        stops.add(page.evaluate(NAME))
    assert len(stops) > 2, stops


CASES = [keyboard_alone, skip_link]
