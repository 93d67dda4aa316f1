"""A service that is restarted while a page is open."""

from playwright.sync_api import expect

from browser import FAILED_RESPONSE, tab


def restart(browser, env):
    """The page says that it is not live, resumes where it was when the service is back, and misses nothing."""
    installation = env.installation
    installation.new_instance("before")
    with tab(browser, installation.url, installation.tokens["tom"], allowed=[FAILED_RESPONSE, "ERR_"]) as desk:
        page = desk.page
        desk.live()
        expect(page.get_by_role("row", name="before")).to_be_visible()
        installation.stop()
        expect(page.locator("#link")).to_have_attribute("data-state", "disconnected")
        desk.announced("The connection is lost")
        expect(page.get_by_role("button", name="Retry now")).to_be_visible()
        expect(page.get_by_role("row", name="before")).to_be_visible()
        page.get_by_role("link", name="Networks").click()
        expect(page.locator(".problem")).to_contain_text("Check the network, and that the service runs")
        page.get_by_role("link", name="Instances").click()

        installation.start()
        installation.new_instance("after")
        # The page may be back before the button is pressed; then it does nothing.
        page.locator("#link ~ button").dispatch_event("click")
        desk.live()
        desk.announced("The connection is back")
        expect(page.get_by_role("row", name="after")).to_be_visible()
        watches = [request for request in desk.requests if "/watch/instances" in request.url]
        assert len(watches) >= 2, "the page did not reconnect"
        assert "last-event-id" in watches[-1].headers, "the page did not resume where it was"


def unseen_tab(browser, env):
    """A tab that nobody sees gives its connection back, and is up to date when it is seen again."""
    installation = env.installation
    with tab(browser, installation.url, installation.tokens["tom"]) as desk:
        page = desk.page
        desk.live()
        # Time that passes in an instant. What is loaded after this line uses it.
        page.clock.install()
        page.reload()
        desk.live()
        page.evaluate(HIDE, True)
        page.clock.fast_forward(61_000)
        expect(page.locator("#link")).to_have_text("Paused")
        installation.new_instance("unseen")
        page.evaluate(HIDE, False)
        desk.live()
        expect(page.get_by_role("row", name="unseen")).to_be_visible()


HIDE = """(isHidden) => {
    Object.defineProperty(document, 'hidden', { value: isHidden, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
}"""

CASES = [unseen_tab, restart]
