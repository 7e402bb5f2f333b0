"""Pages of a server without a secret key: what needs it names the setting, and everything else works."""

import re
from collections.abc import Callable, Iterator

import httpx
import pytest
from pyotp.totp import TOTP

from plankeeper.access.accounts.totp import new_secret
from support.cluster import SharedCluster
from support.console import PASSWORD, Account, Browser
from support.server import RunningServer

WEBHOOKS, TWO_FACTOR = "/console/settings/webhooks", "/console/account/two-factor"
HEADING = "<h1>A secret key is missing</h1>"


@pytest.fixture
def browser(
    server: RunningServer, cluster: SharedCluster, new_account: Callable[..., Account]
) -> Iterator[tuple[Browser, Browser]]:
    """The same owner, signed in to a server without a key and to one with a key."""
    without_key = RunningServer(cluster.dsn, secret_key_file=None).start()
    account = new_account("owner")
    browsers = Browser(without_key.url), Browser(server.url)
    for each in browsers:
        assert each.sign_in(account).status_code == 303
    yield browsers
    for each in browsers:
        each.http.close()
    without_key.stop()


def assert_key_missing(response: httpx.Response) -> None:
    assert response.status_code == 503
    assert response.headers["retry-after"] == "60"
    assert HEADING in response.text
    assert re.search(r"<p>[^<]*PLANKEEPER_SECRET_KEY_FILE[^<]*</p>", response.text), response.text


def test_pages_that_need_a_key_name_the_setting(browser: tuple[Browser, Browser]) -> None:
    without_key, with_key = browser
    form = {"url": "https://example.com/hooks", "payload": "thin", "event_types": "*"}
    assert_key_missing(without_key.submit(WEBHOOKS, form))
    assert "example.com/hooks" not in without_key.get(WEBHOOKS).text
    created = with_key.submit(WEBHOOKS, form)
    assert created.status_code == 200
    [path] = re.findall(rf'href="({WEBHOOKS}/[0-9a-f-]{{36}})"', with_key.get(WEBHOOKS).text)
    assert_key_missing(without_key.submit(f"{path}/rotate-secret"))
    assert without_key.submit(f"{path}/pause").status_code == 303
    assert_key_missing(without_key.get(TWO_FACTOR))
    secret = new_secret()
    submitted = {"secret": secret, "code": TOTP(secret).now(), "password": PASSWORD}
    assert_key_missing(without_key.submit(TWO_FACTOR, submitted))
    assert "Turn on two-factor" in with_key.get("/console/account").text
    assert with_key.submit(TWO_FACTOR, submitted).status_code == 200
