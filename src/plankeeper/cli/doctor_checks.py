"""Checks of `plankeeper doctor` that need no database."""

from plankeeper.settings import Settings

# The first releases without CVE-2024-7592 and older vulnerabilities, by minor version.
_FIXED_PYTHONS = {(3, 11): 10, (3, 12): 6}


def python_warnings(version: tuple[int, int, int]) -> list[tuple[str, str]]:
    """A warning if this release of Python has known vulnerabilities."""
    major, minor, micro = version
    fixed = _FIXED_PYTHONS.get((major, minor), 0)
    if micro >= fixed:
        return []
    text = f"Python {major}.{minor}.{micro} has known vulnerabilities: upgrade to {major}.{minor}.{fixed} or newer"
    return [("warn", text)]


def proxy_warnings(settings: Settings) -> list[tuple[str, str]]:
    """Warnings about a proxy that only one of its two settings describes."""
    if settings.trusted_proxies and settings.public_url is None:
        text = (
            "PLANKEEPER_TRUSTED_PROXIES is set without PLANKEEPER_PUBLIC_URL: cookies and links of the console depend"
            " on the headers that the proxy sends"
        )
    elif settings.public_url and not settings.trusted_proxies:
        text = (
            "PLANKEEPER_PUBLIC_URL is set without PLANKEEPER_TRUSTED_PROXIES: X-Forwarded-For is ignored, and all"
            " clients of the proxy share the limits of its address"
        )
    else:
        return []
    return [("warn", text)]


def mail_lines(settings: Settings) -> list[tuple[str, str]]:
    """Whether mails can be sent: connects to the mail server, and signs in. Without one, there is nothing to report."""
    from plankeeper.mail import client

    server = settings.smtp_server
    if server is None:
        return []
    name = f"mail server {server.host}:{server.port}"
    try:
        with client.open_session(server, "localhost") as smtp:
            encryption = "with TLS" if smtp.is_encrypted else "without encryption"
    except client.MailError as error:
        reply = f" It replied: {error.reply}" if error.reply else ""
        return [("FAIL", f"{name}: {error}.{reply}")]
    return [("ok", f"{name}, {encryption}{', signed in' if server.username else ''}")]
