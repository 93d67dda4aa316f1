"""Text from tenants and from the service is shown as text, wherever it comes from."""

import json

from playwright.sync_api import expect

from browser import FAILED_RESPONSE, tab

MARKUP = "<img src=x onerror=\"window.broken=1\"><script>window.broken=1</script>"


def hostile_text(browser, env):
    """Description and tags with markup, and events, conditions and problems with it, as a broken service would send them."""
    installation = env.installation
    tags = [{"name": "<b>bold</b>", "value": MARKUP}]
    id = installation.new_instance("hostile", description=MARKUP, tags=tags)
    with tab(browser, installation.url, installation.tokens["tom"], allowed=[FAILED_RESPONSE]) as desk:
        page = desk.page
        event = {"at": MARKUP, "by": MARKUP, "kind": MARKUP, "message": MARKUP}
        page.route("**/api/v2/instances/*/events", lambda route: route.fulfill(json={"items": [event]}))
        row = page.get_by_role("row", name="hostile")
        expect(row.locator(".about")).to_have_text(MARKUP)
        row.get_by_role("link").click()
        desk.heading("hostile")
        expect(page.locator(".facts")).to_contain_text(MARKUP)
        expect(page.locator(".tags li")).to_have_text(f"<b>bold</b>={MARKUP}")
        expect(page.locator(".events li")).to_contain_text(MARKUP)
        problem = {"type": MARKUP, "title": MARKUP, "status": 409, "code": MARKUP, "detail": MARKUP, "traceId": MARKUP, "existingId": "javascript:alert(1)"}
        body = json.dumps(problem)
        page.route("**/stop", lambda route: route.fulfill(status=409, content_type="application/problem+json", body=body))
        page.get_by_role("button", name="Stop", exact=True).click()
        expect(page.locator(".problem-title")).to_have_text(MARKUP)
        expect(page.locator(".problem code")).to_have_text(MARKUP)
        expect(page.locator(".problem a")).to_have_attribute("href", "#/instances/javascript%3Aalert(1)")
        assert page.locator("img, b, main script").count() == 0, "text became elements"
        assert page.evaluate("window.broken") is None
    installation.olga.delete(f"/api/v2/instances/{id}")


def policy_is_enforced(browser, env):
    """The browser refuses what the policy does not permit."""
    with tab(browser, env.sample.url, env.sample.token) as desk:
        desk.heading("Instances")
        desk.live()
        desk.allow("Content Security Policy", "TrustedHTML", FAILED_RESPONSE)
        refused = desk.page.evaluate("""() => {
            const refused = [];
            addEventListener('securitypolicyviolation', (event) => refused.push(event.effectiveDirective));
            try { document.createElement('p').innerHTML = '<b>x</b>'; } catch (error) { refused.push(error.name); }
            document.body.append(Object.assign(document.createElement('iframe'), { src: '/docs' }));
            document.body.append(Object.assign(document.createElement('img'), { src: 'data:image/gif;base64,R0lGODlhAQABAAAAACw=' }));
            document.body.setAttribute('style', 'color: red');
            return new Promise((done) => setInterval(() => refused.length >= 5 && done(refused), 20));
        }""")
        expected = {"TypeError", "require-trusted-types-for", "frame-src", "img-src"}
        assert expected <= set(refused) and any("style-src" in name for name in refused), refused


CASES = [hostile_text, policy_is_enforced]
