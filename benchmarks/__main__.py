"""The command line: `python -m benchmarks install | run | flat | record`."""

import argparse
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NoReturn

from benchmarks.flat import Options as FlatOptions
from benchmarks.flat import flat
from benchmarks.install import install
from benchmarks.processes import ProgramError
from benchmarks.regressions import record_baseline
from benchmarks.run import Options, run
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
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--work", type=Path, default=Path(".bench"), help="the folder for peers and data (.bench)")

    command = commands.add_parser("install", parents=[common], help="install the peers")
    command.set_defaults(command=lambda args: install(args.work.absolute()))
    _add_run_options(commands.add_parser("run", parents=[common], help="measure all systems"))
    flat_help = "measure whether performance depends on the amount of data"
    _add_flat_options(commands.add_parser("flat", parents=[common], help=flat_help))
    record_help = "measure and record the processor time that the tests compare with"
    command = commands.add_parser("record", parents=[common], help=record_help)
    command.set_defaults(command=lambda args: record_baseline(args.work.absolute()))
    return parser


def _add_run_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--quick", action="store_true", help="the essentials, in about 5 minutes")
    command.add_argument(
        "--systems", type=_names(SYSTEMS), default=list(SYSTEMS), help=f"a selection of {','.join(SYSTEMS)}"
    )
    scenarios = {scenario.name: scenario for scenario in SCENARIOS}
    command.add_argument("--scenarios", type=_names(scenarios), help=f"a selection of {','.join(scenarios)}")
    command.add_argument("--sizes", type=_numbers, help="numbers of participants (10000,1000000)")
    command.add_argument("--rounds", type=int, help="rounds in which each system is measured (3)")
    command.add_argument("--seconds", type=int, help="seconds of load per scenario and round (4)")
    command.add_argument(
        "--load-minutes", type=float, default=10, help="a system that takes longer to load gets fewer rows (10)"
    )
    command.add_argument("--fresh", action="store_true", help="reload all data")
    command.add_argument(
        "--by-copy", action="store_true", help="load Plankeeper with COPY instead of an import, for a quick look"
    )
    command.add_argument("--no-transfers", action="store_true", help="leave out import, export and COPY")
    command.add_argument("--out", type=Path, help="the folder for the results (<work>/results)")
    command.set_defaults(command=_run)


def _add_flat_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--few", type=int, default=1_000, help="participants of the small server (1000)")
    command.add_argument("--many", type=int, default=1_000_000, help="participants of the large ones (1000000)")
    command.add_argument(
        "--tenants", type=int, default=200, help="plan managers that share the participants of the third server (200)"
    )
    command.add_argument("--rounds", type=int, default=3, help="rounds in which each server is measured (3)")
    command.add_argument("--seconds", type=int, default=4, help="seconds of load per scenario and round (4)")
    command.add_argument("--fresh", action="store_true", help="reload all data")
    command.add_argument("--out", type=Path, help="the folder for the results (<work>/results)")
    command.set_defaults(command=_flat)


def _flat(args: argparse.Namespace) -> None:
    out = (args.out or args.work / "results").absolute()
    flat(
        FlatOptions(
            work=args.work.absolute(),
            out=out,
            few=args.few,
            many=args.many,
            tenants=args.tenants,
            rounds=args.rounds,
            seconds=args.seconds,
            fresh=args.fresh,
        )
    )


def _run(args: argparse.Namespace) -> None:
    names = args.scenarios or [each.name for each in SCENARIOS if each.essential or not args.quick]
    succeeded = run(
        Options(
            work=args.work.absolute(),
            out=(args.out or args.work / "results").absolute(),
            systems=args.systems,
            sizes=args.sizes or ([10_000] if args.quick else [10_000, 1_000_000]),
            scenarios=[each for each in SCENARIOS if each.name in names],
            rounds=args.rounds or (1 if args.quick else 3),
            seconds=args.seconds or (2 if args.quick else 4),
            load_seconds=args.load_minutes * 60,
            fresh=args.fresh,
            by_copy=args.by_copy,
            transfers=not args.no_transfers,
        )
    )
    if not succeeded:
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
