"""`plankeeper mail`: tests the connection to the mail server."""

import click

from plankeeper.cli.context import load_settings
from plankeeper.core.errors import ValidationError


@click.group()
def mail() -> None:
    """Test the mail server."""


@mail.command()
@click.argument("email")
def test(email: str) -> None:
    """Send a test message to EMAIL, and print the mail server's reply."""
    from plankeeper.access.accounts.members import validate_email
    from plankeeper.mail import client, messages
    from plankeeper.mail.sender import utc_now

    settings = load_settings()
    server = settings.smtp_server
    if server is None:
        raise click.ClickException("PLANKEEPER_SMTP_URL isn't set, so Plankeeper sends no mails.")
    try:
        text = messages.smtp_test(settings.require_public_url("PLANKEEPER_SMTP_URL"))
        message = messages.build_message(settings, validate_email(email), text, utc_now())
        reply = client.send(server, message)
    except ValidationError as error:
        raise click.ClickException(f"The email {(error.errors or [])[0].message}.") from None
    except client.MailError as error:
        reply = f" It replied: {error.reply}" if error.reply else ""
        raise click.ClickException(f"Cannot send mails with {server.host}:{server.port}: {error}.{reply}") from None
    click.echo(f"{server.host}:{server.port} accepted the message: {reply}")
