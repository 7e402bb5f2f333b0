"""The program's entry point, also of `python -m plankeeper`."""

from plankeeper.core.interrupts import end_on_interrupt


def main() -> None:
    """Load and run the command line. While it loads, Ctrl-C ends the program without a traceback."""
    with end_on_interrupt():
        from plankeeper.cli import main as run_command_line

    run_command_line()


if __name__ == "__main__":
    main()
