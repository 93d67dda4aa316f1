"""Tokens that are wrong, expired or not enough, and lists of several pages."""

import re

from playwright.sync_api import expect

from browser import FAILED_RESPONSE, tab


def wrong_token(browser, env):
    """A token that is wrong or malformed is refused with what to do, and is not kept."""
    sample = env.sample
    with tab(browser, sample.url, allowed=[FAILED_RESPONSE]) as desk:
        page = desk.page
        desk.sign_in("fleetwright_wrong")
        field = page.get_by_label("Token")
        expect(page.get_by_text("The service does not accept this token")).to_be_visible()
        expect(page.locator(".field-error")).to_have_text(re.compile("Trace id [0-9a-f]{32}"))
        expect(field).to_have_attribute("aria-invalid", "true")
        expect(field).to_be_focused()
        for malformed in ("", "two words", "tökén"):
            field.fill(malformed)
            page.get_by_role("button", name="Sign in").click()
            expect(page.locator(".field-error")).to_have_text(re.compile("Paste a token|copy it again"))
        assert page.evaluate("sessionStorage.length") == 0
        field.fill(sample.token)
        field.press("Enter")
        desk.heading("Instances")
        page.reload()
        desk.heading("Instances")


def revoked_token(browser, env):
    """A token that ends while the page is open leads to the form, with the reason, and then back to the same place."""
    installation = env.installation
    tokens = installation.folder / "tokens.toml"
    with tab(browser, installation.url, installation.tokens["tom"], allowed=[FAILED_RESPONSE]) as desk:
        page = desk.page
        desk.heading("Instances")
        before = tokens.read_text()
        tokens.write_text("")
        try:
            installation.wait_until("tom", 401)
            # The watch may have noticed already; then this changes the address only.
            page.evaluate("location.hash = '#/networks'")
            desk.heading("Sign in to fleetwright")
            expect(page.locator(".notice")).to_contain_text("has expired or was revoked")
        finally:
            tokens.write_text(before)
        installation.wait_until("tom", 200)
        page.get_by_label("Token").fill(installation.tokens["tom"])
        page.keyboard.press("Enter")
        desk.heading("Networks")


def missing_permissions(browser, env):
    """What the roles do not permit is said where it was tried, with the trace id; the rest works."""
    installation = env.installation
    id = installation.new_instance("theirs")
    with tab(browser, installation.url, installation.tokens["rita"], allowed=[FAILED_RESPONSE]) as desk:
        page = desk.page
        page.get_by_role("link", name="theirs").click()
        desk.heading("theirs")
        page.get_by_role("button", name="Stop", exact=True).click()
        problem = page.locator(".problem")
        expect(problem).to_contain_text("Ask an administrator of your organization for the role")
        expect(problem.locator("code")).to_have_text(re.compile("^[0-9a-f]{32}$"))
        page.get_by_role("link", name="Quota").click()
        expect(page.locator("section.card", has_text="Project shop").locator("[data-kind=servers]")).to_be_visible()
        expect(page.locator("section.card", has_text="The quota of the organization cannot be shown")).to_be_visible()
    with tab(browser, installation.url, installation.tokens["nobody"], allowed=[FAILED_RESPONSE]) as desk:
        desk.heading("Instances")
        expect(desk.page.locator(".problem")).to_contain_text("Ask an administrator")
        assert installation.organization not in desk.page.content(), "an organization is shown to somebody without a role in it"
    installation.olga.delete(f"/api/v2/instances/{id}")


def long_lists(browser, env):
    """Long lists are loaded page by page, and what is filtered is asked of the service."""
    installation, olga = env.installation, env.installation.olga
    olga.put(f"/api/v2/organizations/{installation.organization}/quota",
             {"limits": [{"kind": kind, "limit": 1000} for kind in ("networks", "servers")]})
    bulk = olga.post(f"/api/v2/organizations/{installation.organization}/projects", {"name": "bulk"})["id"]
    scope = {"organizationId": installation.organization, "projectId": bulk}
    for number in range(55):
        new = {**scope, "regionId": "north", "name": f"n{number:02}", "prefix": f"10.{number + 1}.0.0/16"}
        network = olga.post("/api/v2/networks", new)["id"]
    spec = {**scope, "networkId": network, "flavorId": "standard-2", "imageId": "debian-13"}
    for number in range(52):
        olga.post("/api/v2/instances", {"metadata": {"name": f"m{number:02}"}, "spec": spec})
    with tab(browser, installation.url, installation.tokens["olga"]) as desk:
        page = desk.page
        desk.heading("Instances")
        page.get_by_label("Project").select_option("bulk")
        expect(page.get_by_label("Project")).to_be_focused()
        expect(page.locator("tbody tr")).to_have_count(50)
        expect(page.get_by_text("The first 50 are shown.")).to_be_visible()
        page.get_by_role("button", name="Load more").click()
        expect(page.locator("tbody tr")).to_have_count(52)
        expect(page.get_by_text("52 instances")).to_be_visible()
        shown = page.locator("tbody tr td:first-child a").all_text_contents()
        assert shown == sorted(shown), shown
        page.get_by_label("State").select_option("stopped")
        expect(page.get_by_text("No instance is in this state.")).to_be_visible()
        assert any("powerState=stopped" in request.url for request in desk.requests)
        page.get_by_role("link", name="Networks").click()
        expect(page.locator(".cards > li")).to_have_count(50)
        page.get_by_role("button", name="Load more").click()
        expect(page.locator(".cards > li")).to_have_count(55)
        expect(page.get_by_role("button", name="Load more")).to_be_hidden()


CASES = [wrong_token, revoked_token, missing_permissions, long_lists]
