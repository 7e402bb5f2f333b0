"""The command line: `python -m benchmarks install | run | flat | record`."""

import argparse
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NoReturn

from benchmarks.flat import flat
from benchmarks.install import install
from benchmarks.processes import ProgramError
from benchmarks.regressions import record_baseline
from benchmarks.run import run
from benchmarks.scenarios import SCENARIOS, WrongResponseError
from benchmarks.systems import SYSTEMS
from plankeeper.server.embedded_postgres.binaries import ClusterError


def main() -> None:
    """Run a command. The programs that it starts end with it."""
    signal.signal(signal.SIGTERM, _exit_on_sigterm)
    args = _parser().parse_args()
    try:
        args.command(args)
    except (ProgramError, WrongResponseError, ClusterError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)


def _exit_on_sigterm(_number: int, _frame: object) -> NoReturn:
    sys.exit(143)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Compare Plankeeper with similar systems."
    )
    commands = parser.add_subparsers(required=True)

    def add(name: str, command: Callable[[argparse.Namespace], object], text: str) -> Callable[..., argparse.Action]:
        subparser = commands.add_parser(name, help=text)
        subparser.set_defaults(command=command)
        subparser.add_argument("--work", type=_folder, default=".bench", help="the folder for peers and data (.bench)")
        return subparser.add_argument

    def add_measurement(option: Callable[..., argparse.Action], rounds: int | None, seconds: int | None) -> None:
        option("--rounds", type=int, default=rounds, help="rounds in which each system is measured (3)")
        option("--seconds", type=int, default=seconds, help="seconds of load per scenario and round (4)")
        option("--fresh", action="store_true", help="reload all data")
        option("--out", type=_folder, help="the folder for the results (<work>/results)")

    add("install", lambda args: install(args.work), "install the peers")
    record_help = "measure and record the processor time that the tests compare with"
    add("record", lambda args: record_baseline(args.work), record_help)

    option = add("flat", _flat, "measure whether performance depends on the amount of data")
    option("--few", type=int, default=1_000, help="participants of the small server (1000)")
    option("--many", type=int, default=1_000_000, help="participants of the large ones (1000000)")
    option("--tenants", type=int, default=200, help="plan managers that share those of the third server (200)")
    add_measurement(option, 3, 4)

    option = add("run", _run, "measure all systems")
    scenarios = {scenario.name: scenario for scenario in SCENARIOS}
    option("--quick", action="store_true", help="the essentials, in about 5 minutes")
    option("--systems", type=_names(SYSTEMS), default=list(SYSTEMS), help=f"a selection of {','.join(SYSTEMS)}")
    option("--scenarios", type=_names(scenarios), help=f"a selection of {','.join(scenarios)}")
    option("--sizes", type=_numbers, help="numbers of participants (10000,1000000)")
    option("--load-minutes", type=float, default=10, help="a system that takes longer to load gets fewer rows (10)")
    option("--by-copy", action="store_true", help="load Plankeeper with COPY, for a quick look")
    option("--no-transfers", action="store_true", help="leave out import, export and COPY")
    add_measurement(option, None, None)
    return parser


def _folder(text: str) -> Path:
    return Path(text).absolute()


def _flat(args: argparse.Namespace) -> None:
    args.out = args.out or args.work / "results"
    flat(args)


def _run(args: argparse.Namespace) -> None:
    names = args.scenarios or [each.name for each in SCENARIOS if each.essential or not args.quick]
    args.scenarios = [each for each in SCENARIOS if each.name in names]
    args.out = args.out or args.work / "results"
    args.sizes = args.sizes or ([10_000] if args.quick else [10_000, 1_000_000])
    args.rounds = args.rounds or (1 if args.quick else 3)
    args.seconds = args.seconds or (2 if args.quick else 4)
    if not run(args):
        sys.exit(1)


def _names(choices: Iterable[str]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        names = text.split(",")
        if unknown := [name for name in names if name not in choices]:
            raise argparse.ArgumentTypeError(f"unknown names: {', '.join(unknown)}; choose from {', '.join(choices)}")
        return names

    return parse


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


if __name__ == "__main__":
    main()
