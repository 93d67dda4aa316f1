"""Chromium, and pages of it that fail a case by every error that they log."""

import contextlib

from playwright.sync_api import expect

CHROMIUM = "/usr/bin/chromium"
# Chromium makes no connection of its own with these: it would try to update its components and to look up hosts.
FLAGS = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
# How long a condition is waited for, in milliseconds.
PATIENCE = 30_000
# What Chromium logs about a response that is no success. The cases that cause one say so.
FAILED_RESPONSE = "Failed to load resource"
# The events of an instance may be asked for in the moment in which it disappears.
GONE = "/events)"
# An observation that is written between a read and an update: the page reads again.
OBSERVED = "412 (Precondition Failed)"

expect.set_options(timeout=PATIENCE)


def launch(playwright):
    return playwright.chromium.launch(executable_path=CHROMIUM, headless=True, chromium_sandbox=False, args=FLAGS)


class Tab:
    """A page in a context of its own, with what it has logged and requested."""

    def __init__(self, context, url, allowed):
        self.url, self.allowed = url, list(allowed)
        self.problems, self.requests = [], []
        self.page = context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.page.on("console", self.on_console)
        self.page.on("pageerror", lambda error: self.problems.append(f"uncaught: {error}"))
        self.page.on("request", lambda request: self.requests.append(request))

    def on_console(self, message):
        text = f"{message.text} ({message.location.get('url', '')})"
        if message.type in ("error", "warning") and not any(part in text for part in self.allowed):
            self.problems.append(f"{message.type}: {text}")

    def allow(self, *parts):
        """From here on, the case causes errors that have these parts in their text."""
        self.allowed.extend(parts)

    def sign_in(self, token):
        self.page.goto(self.url + "/console")
        self.page.get_by_label("Token").fill(token)
        self.page.get_by_role("button", name="Sign in").click()

    def heading(self, text):
        expect(self.page.get_by_role("heading", level=1, name=text)).to_be_visible()

    def badge(self, text):
        """Waits for the state in the heading of an instance."""
        expect(self.page.locator("main .title-row .badge")).to_have_text(text)

    def live(self):
        expect(self.page.locator("#link")).to_have_text("Live")

    def announced(self, text):
        expect(self.page.locator("#status")).to_contain_text(text)

    def check(self, token):
        """What holds for every page, whatever was done with it."""
        assert not self.problems, "the page logged: " + "; ".join(self.problems)
        others = [request.url for request in self.requests if not request.url.startswith((self.url + "/", "data:", "blob:"))]
        assert not others, f"requests to other hosts: {others}"
        assert self.requests, "the page requested nothing"
        leaks = [request.url for request in self.requests if token and token in request.url]
        assert not leaks and not (token and token in self.page.url), "the token is in an address"


@contextlib.contextmanager
def tab(browser, url, token=None, allowed=(), **context):
    """Opens a page, signs in if there is a token, and checks it at the end."""
    opened = browser.new_context(locale="en-GB", timezone_id="UTC", **{"viewport": {"width": 1200, "height": 800}, **context})
    try:
        page = Tab(opened, url, allowed)
        if token:
            page.sign_in(token)
        yield page
        page.check(token)
    finally:
        opened.close()
