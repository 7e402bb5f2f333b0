"""The server connects only to its database, webhook endpoints, mail server, sign-in providers and collector."""

import ast

from contract.sources import imports, modules

# Libraries that open connections to an address that they are given.
CLIENTS = {
    "aiohttp", "ftplib", "http.client", "httpcore", "httpx", "imaplib", "opentelemetry.exporter",
    "paramiko", "poplib", "requests", "smtplib", "telnetlib", "urllib.request", "urllib3", "websockets", "xmlrpc",
    "xmlrpc.client",
}  # fmt: skip
# What opens one without a library.
CALLS = {"open_connection", "create_connection", "open_unix_connection", "sock_connect", "connect", "connect_ex"}

# Modules that do, and to what.
OUTGOING_MODULES: dict[str, str] = {
    "cli.doctor": "the server's own public URL, when the operator runs `doctor`",
    "cli.listen": "the server that a developer names, when they run `listen`",
    "database.connections": "the database",
    "database.schema": "the database, for migrations",
    "mail.client": "the operator's mail server",
    "access.single_sign_on.client": "the sign-in providers that the operator configured",
    "server.telemetry.exporters": "the operator's OpenTelemetry collector, if telemetry is on",
    "webhooks.client": "webhook endpoints, whose addresses are checked at every attempt",
}


def outgoing_modules() -> dict[str, set[str]]:
    """The modules that open connections, with what they use."""
    result: dict[str, set[str]] = {}
    for module in modules():
        used = {
            name for name in imports(module) if any(name == each or name.startswith(each + ".") for each in CLIENTS)
        }
        used |= {
            node.func.attr
            for node in module.nodes
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CALLS
        }
        if used:
            result[module.name] = used
    return result


def test_connections_are_opened_only_in_known_modules() -> None:
    assert set(outgoing_modules()) == set(OUTGOING_MODULES), outgoing_modules()
