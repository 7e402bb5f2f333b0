"""The command line: `python -m benchmarks install | run | flat | console`."""

import argparse
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NoReturn

from benchmarks.console import Options as ConsoleOptions
from benchmarks.console import console
from benchmarks.flat import Options as FlatOptions
from benchmarks.flat import flat
from benchmarks.install import install
from benchmarks.processes import ProgramError
from benchmarks.run import Options, run
from benchmarks.scenarios import SCENARIOS, WrongAnswer
from benchmarks.systems import SYSTEMS
from plankeeper.embedded_postgres.binaries import ClusterError


def main() -> None:
    """Run a command; whatever happens, what it started has ended when it returns."""
    signal.signal(signal.SIGTERM, _leave)
    arguments = _parser().parse_args()
    try:
        arguments.command(arguments)
    except (ProgramError, WrongAnswer, ClusterError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)


def _leave(_number: int, _frame: object) -> NoReturn:
    sys.exit(143)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Plankeeper beside its peers.")
    commands = parser.add_subparsers(required=True)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--work", type=Path, default=Path(".bench"), help="where peers and data go (.bench)")

    each = commands.add_parser("install", parents=[common], help="install the peers")
    each.set_defaults(command=lambda given: install(given.work.absolute()))

    each = commands.add_parser("run", parents=[common], help="measure all systems side by side")
    each.add_argument("--quick", action="store_true", help="the essentials, in under 3 minutes")
    each.add_argument("--systems", type=_names(SYSTEMS), default=list(SYSTEMS), help=f"of {','.join(SYSTEMS)}")
    scenarios = {scenario.name: scenario for scenario in SCENARIOS}
    each.add_argument("--scenarios", type=_names(scenarios), help=f"of {','.join(scenarios)}")
    each.add_argument("--sizes", type=_numbers, help="numbers of participants (10000,1000000)")
    each.add_argument("--rounds", type=int, help="how often each system has its turn (3)")
    each.add_argument("--seconds", type=int, help="of load for each scenario in each round (4)")
    each.add_argument("--load-minutes", type=float, default=10, help="a system that takes longer gets fewer rows (10)")
    each.add_argument("--fresh", action="store_true", help="load everything anew")
    each.add_argument("--by-copy", action="store_true", help="load Plankeeper by COPY, not by import: for a quick look")
    each.add_argument("--out", type=Path, help="where the results go (<work>/results)")
    each.set_defaults(command=_run)

    each = commands.add_parser("flat", parents=[common], help="measure whether speed depends on the amount of data")
    each.add_argument("--few", type=int, default=1_000, help="participants of the small server (1000)")
    each.add_argument("--many", type=int, default=1_000_000, help="participants of the large ones (1000000)")
    each.add_argument("--tenants", type=int, default=200, help="plan managers that share them in the third (200)")
    each.add_argument("--rounds", type=int, default=3, help="how often each server has its turn (3)")
    each.add_argument("--seconds", type=int, default=4, help="of load for each scenario in each round (4)")
    each.add_argument("--fresh", action="store_true", help="load everything anew")
    each.add_argument("--out", type=Path, help="where the results go (<work>/results)")
    each.set_defaults(command=_flat)

    each = commands.add_parser("console", parents=[common], help="measure every page of the console")
    each.add_argument("--participants", type=int, default=100_000, help="of the plan manager (100000)")
    each.add_argument("--fresh", action="store_true", help="fill the plan manager anew")
    each.set_defaults(command=_console)
    return parser


def _console(given: argparse.Namespace) -> None:
    console(ConsoleOptions(work=given.work.absolute(), participants=given.participants, fresh=given.fresh))


def _flat(given: argparse.Namespace) -> None:
    out = (given.out or given.work / "results").absolute()
    flat(
        FlatOptions(
            work=given.work.absolute(), out=out, few=given.few, many=given.many, tenants=given.tenants,
            rounds=given.rounds, seconds=given.seconds, fresh=given.fresh,
        )
    )  # fmt: skip


def _run(given: argparse.Namespace) -> None:
    names = given.scenarios or [each.name for each in SCENARIOS if each.essential or not given.quick]
    went_well = run(
        Options(
            work=given.work.absolute(),
            out=(given.out or given.work / "results").absolute(),
            systems=given.systems,
            sizes=given.sizes or ([10_000] if given.quick else [10_000, 1_000_000]),
            scenarios=[each for each in SCENARIOS if each.name in names],
            rounds=given.rounds or (1 if given.quick else 3),
            seconds=given.seconds or (2 if given.quick else 4),
            load_seconds=given.load_minutes * 60,
            fresh=given.fresh,
            by_copy=given.by_copy,
        )
    )
    if not went_well:
        sys.exit(1)


def _names(known: Iterable[str]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        names = text.split(",")
        if wrong := [name for name in names if name not in known]:
            raise argparse.ArgumentTypeError(f"no such name: {', '.join(wrong)}; known are {', '.join(known)}")
        return names

    return parse


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


if __name__ == "__main__":
    main()
