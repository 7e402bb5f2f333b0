"""Lines of `plankeeper doctor` about Python, proxies, mail and secret keys."""

from collections.abc import Sequence

from plankeeper.cli.secret_keys import count_secrets, describe_usage, missing_file_sentence, missing_key_warnings
from plankeeper.core.encryption.cipher import SETTING, KeyFileError, has_open_permissions, read_keys
from plankeeper.core.encryption.rotation import KeyUsage
from plankeeper.core.settings import Settings

# The first releases without CVE-2024-7592 and older vulnerabilities, by minor version.
_FIXED_PYTHONS = {(3, 11): 10, (3, 12): 6}

Line = tuple[str, str]  # ok, warn or FAIL, and a sentence without its full stop


def python_warnings(version: tuple[int, int, int]) -> list[Line]:
    """A warning if this release of Python has known vulnerabilities."""
    major, minor, micro = version
    fixed = _FIXED_PYTHONS.get((major, minor), 0)
    if micro >= fixed:
        return []
    text = f"Python {major}.{minor}.{micro} has known vulnerabilities: upgrade to {major}.{minor}.{fixed} or newer"
    return [("warn", text)]


def proxy_warnings(settings: Settings) -> list[Line]:
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


def mail_lines(settings: Settings) -> list[Line]:
    """Whether mails can be sent: connects to the mail server, and signs in. Without one, there is nothing to report."""
    from plankeeper.mail import client

    server = settings.smtp_server
    if server is None:
        return []
    name = f"mail server {server.host}:{server.port}"
    try:
        with client.smtp_connection(server, "localhost") as smtp:
            encryption = "with TLS" if smtp.is_encrypted else "without encryption"
    except client.MailError as error:
        reply = f" It replied: {error.reply}" if error.reply else ""
        return [("FAIL", f"{name}: {error}.{reply}")]
    return [("ok", f"{name}, {encryption}{', signed in' if server.username else ''}")]


def secret_key_lines(settings: Settings, usage: Sequence[KeyUsage]) -> list[Line]:
    """The keys of the key file, and the keys that stored secrets need."""
    encrypted = [each for each in usage if each.key_id]
    lines = _key_file_lines(settings, is_needed=bool(encrypted))
    if encrypted:
        lines.append(("ok", f"the database contains {describe_usage(encrypted)}"))
    lines += [("FAIL", each.rstrip(".")) for each in missing_key_warnings(settings, usage)]
    lines += [
        ("warn", f"{count_secrets(each.secrets)} in plain text: run `plankeeper secret-key rotate`")
        for each in usage
        if each.key_id is None
    ]
    return lines


def _key_file_lines(settings: Settings, *, is_needed: bool) -> list[Line]:
    path, problem = settings.secret_key_path, "FAIL" if is_needed else "warn"
    if path is None:
        return [(problem, f"{SETTING} is not set: `plankeeper secret-key create FILE` creates a key file")]
    try:
        first, *others = [key.id for key in read_keys(path)]
    except FileNotFoundError:
        is_created_by_serve = settings.secret_key_file is None and not is_needed
        return [] if is_created_by_serve else [(problem, missing_file_sentence(path).rstrip("."))]
    except KeyFileError as error:
        return [("FAIL", str(error).rstrip("."))]
    old = f", {', '.join(others)} only decrypt{'' if len(others) > 1 else 's'}" if others else ""
    lines = [("ok", f"key file {path}: {first} encrypts{old}")]
    if has_open_permissions(path):
        lines.append(("warn", f"other users of the system can read {path}: run `chmod 600 {path}`"))
    return lines
