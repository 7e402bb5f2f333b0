"""Terminals in tests."""

import os


def read_terminal(terminal: int) -> str:
    """The output on a terminal until its last writer has ended, which Linux reports as an input/output error."""
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
