"""A tenant's whole day on the sample, by mouse."""

from playwright.sync_api import expect

from browser import GONE, OBSERVED, tab
from service import Sample

REJECTED = "Tick the box to consent to the loss first."


def whole_day(browser, env):
    """Signs in, creates, watches, stops, starts, changes with consent, deletes, and signs out."""
    live(browser, env.sample)


def whole_day_without_a_database(browser, env):
    """Does the same on a sample with its records in memory."""
    sample = Sample(env.program, ["--in-memory"])
    try:
        live(browser, sample)
    finally:
        sample.stop()


def live(browser, sample):
    with tab(browser, sample.url, sample.token, allowed=[GONE, OBSERVED]) as day, tab(browser, sample.url, sample.token) as beside:
        page = day.page
        day.heading("Instances")
        day.live()
        expect(page.get_by_text("There are no instances here yet")).to_be_visible()
        beside.page.get_by_role("link", name="Quota").click()
        servers = beside.page.locator("[data-kind=servers] dd span").first
        expect(servers).to_contain_text("0")

        create(page)
        day.heading("web-1")
        day.badge("Running")
        day.announced("web-1 is created")
        expect(page.locator(".events")).to_contain_text("Created")
        expect(servers).to_contain_text("1")
        page.get_by_role("link", name="← Instances").click()
        row = page.get_by_role("row", name="web-1")
        expect(row.get_by_role("cell").nth(1)).to_have_text("Running")
        expect(page.get_by_text("1 instance", exact=True)).to_be_visible()

        row.get_by_role("link", name="web-1").click()
        page.get_by_role("button", name="Stop", exact=True).click()
        day.badge("Stopped")
        day.announced("web-1: Stopped")
        page.get_by_role("button", name="Start", exact=True).click()
        day.badge("Running")
        page.get_by_role("button", name="Reboot", exact=True).click()
        day.announced("Reboot of web-1 is requested")
        change_image(day, sample)
        change_tags(day, sample)
        delete(day)
        expect(servers).to_contain_text("0")

        page.get_by_role("button", name="Sign out").click()
        day.heading("Sign in to fleetwright")
        assert page.evaluate("sessionStorage.length") == 0, "the token is still stored"
        page.reload()
        day.heading("Sign in to fleetwright")


def create(page):
    page.get_by_role("link", name="Create an instance").click()
    page.get_by_label("Name").fill("web-1")
    page.get_by_label("Flavor").select_option("standard-2")
    page.get_by_label("Image").select_option("debian-13")
    page.get_by_label("Tags (optional)").fill("no equals sign")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_text("has to be name=value")).to_be_visible()
    page.get_by_label("Tags (optional)").fill("team=blue")
    page.get_by_label("User data (optional)").fill("#!/bin/sh\necho ünïcode\n")
    page.get_by_role("button", name="Create", exact=True).click()


def only(sample):
    [found] = sample.olga.get("/api/v2/instances")["items"]
    return sample.olga.get(f"/api/v2/instances/{found['metadata']['id']}")


def change_image(day, sample):
    """A destructive change: its plan is shown, refused without consent, cancelled, and then made."""
    page, before = day.page, only(sample)
    open_plan(page)
    dialog = page.get_by_role("dialog", name="Change web-1")
    expect(dialog.locator(".loss-title")).to_contain_text("This loses the data on the root disk")
    expect(dialog.locator(".plan")).to_contain_text("Image: the disk is replaced; addresses stay")
    dialog.get_by_role("button", name="Change and lose this").click()
    expect(dialog.get_by_text(REJECTED)).to_be_visible()
    expect(dialog.get_by_role("checkbox")).to_be_focused()
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("button", name="Change…")).to_be_focused()
    now = only(sample)
    assert now["spec"] == before["spec"] and now["metadata"]["generation"] == before["metadata"]["generation"], "a plan has written something"

    open_plan(page)
    dialog.get_by_role("checkbox").check()
    dialog.get_by_role("button", name="Change and lose this").click()
    expect(dialog).to_have_count(0)
    expect(page.locator(".facts")).to_contain_text("rocky-10")
    after = only(sample)
    generation = after["metadata"]["generation"]
    expect(page.locator(".facts")).to_contain_text(f"applied (generation {generation} of {generation})")
    day.badge("Running")
    assert after["spec"]["imageId"] == "rocky-10", after["spec"]
    assert after["spec"]["userData"] == before["spec"]["userData"], "the change has lost the user data"
    assert after["metadata"]["tags"] == before["metadata"]["tags"], after["metadata"]


def open_plan(page):
    page.get_by_role("button", name="Change…").click()
    page.get_by_role("dialog").get_by_label("Image").select_option("rocky-10")
    page.get_by_role("button", name="Show the plan").click()
    expect(page.get_by_role("heading", name="The plan")).to_be_focused()


def change_tags(day, sample):
    """A change that loses nothing needs no consent."""
    page = day.page
    page.get_by_role("button", name="Change…").click()
    page.get_by_role("dialog").get_by_label("Tags").fill("team=green\ntier=1")
    page.get_by_role("button", name="Show the plan").click()
    expect(page.get_by_text("Nothing is lost.")).to_be_visible()
    expect(page.get_by_role("dialog").get_by_role("checkbox")).to_have_count(0)
    page.get_by_role("button", name="Apply").click()
    expect(page.locator(".tags li")).to_have_text(["team=green", "tier=1"])


def delete(day):
    page = day.page
    address = page.locator(".facts").get_by_text("10.", exact=False).first.text_content()
    page.get_by_role("button", name="Delete…").click()
    dialog = page.get_by_role("dialog", name="Delete web-1?")
    expect(dialog.get_by_role("button", name="Keep it")).to_be_focused()
    expect(dialog.locator(".loss-title")).to_contain_text("the data on its root disk")
    expect(dialog.locator(".loss-title")).to_contain_text(address)
    dialog.get_by_role("button", name="Keep it").click()
    day.badge("Running")
    page.get_by_role("button", name="Delete…").click()
    dialog.get_by_role("checkbox").check()
    dialog.get_by_role("button", name="Delete web-1").click()
    day.heading("web-1 is deleted")
    page.get_by_role("link", name="Show the instances").click()
    expect(page.get_by_text("There are no instances here yet")).to_be_visible()


CASES = [whole_day, whole_day_without_a_database]
