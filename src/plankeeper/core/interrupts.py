"""Ctrl-C while the program loads."""

import signal
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def end_on_interrupt() -> Generator[None]:
    """Ctrl-C ends the program without a traceback. Python can't raise KeyboardInterrupt everywhere in an import."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
