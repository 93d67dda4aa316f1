"""How it looks: a phone, the dark, no motion; axe-core on every view; and the pictures of the documentation."""

import importlib.resources

from playwright.sync_api import expect

from browser import tab

PHONE = {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark", "reduced_motion": "reduce", "has_touch": True, "is_mobile": True}
DESKTOP = {"viewport": {"width": 1200, "height": 720}, "color_scheme": "light"}
SERIOUS = {"serious", "critical"}
AXE = importlib.resources.files("axe_playwright_python").joinpath("axe.min.js").read_text()


def phone_in_the_dark(browser, env):
    look(browser, env, PHONE, "phone-dark")


def desktop_in_the_light(browser, env):
    look(browser, env, DESKTOP, "desktop-light")


def look(browser, env, context, name):
    sample = env.sample
    described = {"description": "The shop", "tags": [{"name": "team", "value": "blue"}, {"name": "tier", "value": "1"}]}
    ids = [sample.new_instance("web-1", **described), sample.new_instance("web-2"), sample.new_instance("worker-1", flavor="arm-2", image="debian-13-arm")]
    sample.olga.post(f"/api/v2/instances/{ids[1]}/stop", {})
    try:
        look_at_views(browser, env, context, name)
    finally:
        for id in ids:
            sample.olga.delete(f"/api/v2/instances/{id}")
        sample.wait_until_empty()


def look_at_views(browser, env, context, name):
    sample = env.sample
    with tab(browser, sample.url, **context) as desk:
        page = desk.page
        page.goto(sample.url + "/console")
        desk.heading("Sign in to fleetwright")
        judge(page, context, "sign-in")
        desk.sign_in(sample.token)
        desk.heading("Instances")
        for row, state in (("web-1", "Running"), ("web-2", "Stopped"), ("worker-1", "Running")):
            expect(page.get_by_role("row", name=row)).to_contain_text(state)
        judge(page, context, "instances")
        picture(page, env, f"{name}-instances")
        page.get_by_role("link", name="web-1").click()
        desk.badge("Running")
        expect(page.locator(".events li")).not_to_have_count(0)
        judge(page, context, "instance")
        picture(page, env, f"{name}-instance")
        page.get_by_role("button", name="Change…").click()
        page.get_by_role("dialog").get_by_label("Image").select_option("rocky-10")
        judge(page, context, "change")
        page.get_by_role("button", name="Show the plan").click()
        expect(page.locator(".loss")).to_be_visible()
        judge(page, context, "plan")
        picture(page, env, f"{name}-plan")
        page.keyboard.press("Escape")
        page.get_by_role("link", name="Quota").click()
        expect(page.locator("[data-kind=servers]").first).to_be_visible()
        judge(page, context, "quota")
        picture(page, env, f"{name}-quota")
        page.get_by_role("link", name="Networks").click()
        expect(page.locator(".cards > li").first).to_be_visible()
        judge(page, context, "networks")
        page.goto(sample.url + "/console#/create")
        expect(page.get_by_label("Image").locator("option")).not_to_have_count(0)
        judge(page, context, "create")
        picture(page, env, f"{name}-create")
        page.goto(sample.url + "/docs")
        expect(page.get_by_role("link", name="console")).to_be_visible()
        judge(page, context, "docs")


def judge(page, context, view):
    """No horizontal scrolling, the right colours, no motion where none is wanted, and nothing that axe-core calls serious."""
    width = context["viewport"]["width"]
    scroll = page.evaluate("document.documentElement.scrollWidth")
    assert scroll <= width, f"{view} is {scroll} pixels wide, and the screen {width}"
    is_dark = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).every((part) => part < 60)")
    assert is_dark == (context["color_scheme"] == "dark"), f"{view} has the wrong colours"
    if context.get("reduced_motion"):
        assert page.evaluate("document.getAnimations().length") == 0, f"{view} moves"
    page.evaluate(AXE)
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")["violations"]
    serious = [f"{one['id']}: {one['help']}: {[node['html'] for node in one['nodes']]}" for one in found if one["impact"] in SERIOUS]
    assert not serious, f"{view}: " + "; ".join(serious)


def picture(page, env, name):
    page.screenshot(path=env.pictures / f"{name}.png", animations="disabled", caret="hide")


CASES = [phone_in_the_dark, desktop_in_the_light]
