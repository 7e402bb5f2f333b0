#!/usr/bin/env python3
"""A receiver of webhooks: it verifies each message, stores it once, and responds."""

import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from standardwebhooks import Webhook, WebhookVerificationError

webhook = Webhook(os.environ["WEBHOOK_SECRET"])
kept: dict[str, Any] = {}  # in yours: a table with the message's id as its key


def keep(message_id: str, event: dict[str, Any]) -> None:
    """Ignore messages that were sent again. Process events after the response."""
    if kept.setdefault(message_id, event) is event:
        sys.stdout.write(f"{message_id} {event['type']} {event['data']['resource']['id']}\n")


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.send_response(self.receive(body))
        self.end_headers()

    def receive(self, body: bytes) -> int:
        try:
            event = webhook.verify(body, dict(self.headers))
        except (WebhookVerificationError, ValueError):
            return 401
        keep(self.headers["webhook-id"], event)
        return 204


with ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver) as server:
    sys.stdout.write(f"Listening on port {server.server_port}\n")
    server.serve_forever()
