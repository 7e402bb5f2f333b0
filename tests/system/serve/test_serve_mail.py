"""The running program with a mail server: from an invitation to a reset password, with TLS and a password."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trustme

from support.console import PASSWORD, Browser
from support.folder import temporary_folder
from support.mail import PUBLIC_URL, USERNAME, MailServer, public_browser
from support.program import ServeProcess, run_plankeeper, run_program

EMAIL = "sam@example.com"
NEW_PASSWORD = "eleven-amber-lighthouses"
PLAN_MANAGER = "019a0000-0000-7000-8000-0000000000b1"


@pytest.fixture
def folder() -> Iterator[Path]:
    with temporary_folder() as path:
        yield path


@pytest.fixture
def new_browser() -> Iterator[Callable[[ServeProcess], Browser]]:
    opened: list[Browser] = []

    def make(serving: ServeProcess) -> Browser:
        opened.append(public_browser(serving.url))
        return opened[-1]

    yield make
    for each in opened:
        each.http.close()


def submit(browser: Browser, path: str, **form: str) -> int:
    # A proxy could pass on what a client says about the host.
    headers = {"Origin": PUBLIC_URL, "X-Forwarded-Host": "evil.example"}
    return browser.submit(path, form, path, headers=headers).status_code


def link_path(mail: MailServer, count: int) -> str:
    received = mail.wait_for(EMAIL, count)
    assert (received.is_encrypted, received.username) == (True, USERNAME)
    [link] = received.links
    assert link.startswith(f"{PUBLIC_URL}/console/")
    return link.removeprefix(PUBLIC_URL)


@pytest.mark.parametrize("tls", ["starttls", "smtps"])
def test_an_invited_person_joins_and_resets_a_forgotten_password(
    folder: Path, new_browser: Callable[[ServeProcess], Browser], copy_migrated_data: Callable[[Path], None], tls: str
) -> None:
    copy_migrated_data(folder)
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "authority.pem"))
    with MailServer(tls=tls, has_login=True, authority=authority) as mail:
        settings = {
            "PLANKEEPER_PUBLIC_URL": PUBLIC_URL,
            "PLANKEEPER_SMTP_URL": mail.url(),
            "SSL_CERT_FILE": str(folder / "authority.pem"),
        }
        serving = ServeProcess(folder, workers=2, **settings)
        settings["PLANKEEPER_DATA_DIR"] = str(folder)
        run_plankeeper("plan-managers", "create", "--name", "Acacia", "--id", PLAN_MANAGER, **settings)
        arguments = ["--email", EMAIL, "--name", "Sam", "--plan-manager", PLAN_MANAGER, "--role", "owner"]
        created = run_plankeeper("accounts", "create", *arguments, **settings)
        assert created.stdout == f"A server will send the invitation to {EMAIL}.\n"

        browser, elsewhere = new_browser(serving), new_browser(serving)
        assert submit(browser, link_path(mail, 1), name="Sam", password=PASSWORD) == 303
        assert mail.wait_for(EMAIL, 2).message["Subject"] == "New sign-in to your Plankeeper account"
        assert browser.get("/console/participants").status_code == 200

        assert submit(elsewhere, "/console/forgot-password", email=EMAIL) == 200
        path = link_path(mail, 3)
        assert [submit(elsewhere, path, password=NEW_PASSWORD), elsewhere.get(path).status_code] == [200, 404]
        assert browser.get("/console/participants").status_code == 303
        assert submit(elsewhere, "/console/sign-in", email=EMAIL, password=PASSWORD) == 401
        assert submit(elsewhere, "/console/sign-in", email=EMAIL, password=NEW_PASSWORD) == 303
        mail.wait_for(EMAIL, 4)
        assert serving.stop() == 0
        assert len(mail.received) == 4
    assert [line for line in serving.lines if EMAIL in line] == []


def test_mails_are_sent_after_the_mail_server_is_back(
    folder: Path, new_browser: Callable[[ServeProcess], Browser], copy_sample_data: Callable[[Path], None]
) -> None:
    copy_sample_data(folder)
    mail = MailServer()
    settings = {"PLANKEEPER_PUBLIC_URL": PUBLIC_URL, "PLANKEEPER_SMTP_URL": mail.url()}
    serving = ServeProcess(folder, "--demo", **settings)
    browser, email = new_browser(serving), "demo@plankeeper.example"
    assert submit(browser, "/console/forgot-password", email=email) == 200
    assert browser.get("/console/sign-in").status_code == 200
    with mail:
        assert mail.wait_for(email).message["Subject"] == "Reset your Plankeeper password"
    assert serving.stop() == 0


def test_serve_refuses_to_start_without_a_public_url(folder: Path) -> None:
    done = run_program("serve", PLANKEEPER_DATA_DIR=str(folder), PLANKEEPER_SMTP_URL="smtp://127.0.0.1:25")
    assert done.returncode == 1
    [line] = [json.loads(line) for line in done.stderr.splitlines()]
    assert (line["level"], line["event"]) == ("error", "the program cannot start")
    assert line["reason"].startswith("PLANKEEPER_SMTP_URL requires PLANKEEPER_PUBLIC_URL")
