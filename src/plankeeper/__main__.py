"""The program's entry point, also of `python -m plankeeper`."""

import signal


def main() -> None:
    """Load and run the command line. While it loads, Ctrl-C ends the program without a traceback."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from plankeeper.cli import main as run_command_line

    signal.signal(signal.SIGINT, handler)
    run_command_line()


if __name__ == "__main__":
    main()
