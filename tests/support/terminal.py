"""Terminals in tests."""

import os


def read_terminal(terminal: int) -> str:
    """All that is shown on a terminal until its last writer has gone, which Linux tells as an input/output error."""
    shown = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:
            part = b""
        if not part:
            os.close(terminal)
            return shown.decode()
        shown += part
