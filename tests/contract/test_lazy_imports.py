"""Modules that are imported only when they are used: the sample data, and the library for metrics."""

import subprocess
import sys

from contract.sources import imports, modules

# All commands: the module of a command is imported when it runs, too.
COMMANDS = (
    "import sys; from importlib import import_module as load; from plankeeper import cli; "
    "[load(f'plankeeper.cli.{module}') for module, _ in cli.COMMANDS.values()]; "
)


def test_only_the_modules_that_load_the_sample_data_import_it() -> None:
    importing = {
        module.name
        for module in modules()
        if not module.name.startswith("cli.sample_data.")
        if any(f"{name}.".startswith("plankeeper.cli.sample_data.") for name in imports(module))
    }
    assert importing == {"cli.demo", "cli.demo_claims", "cli.demo_month_end"}


def test_neither_the_commands_nor_the_application_import_the_sample_data() -> None:
    program = f"{COMMANDS}import plankeeper.server.app; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    imported = set(done.stdout.split())
    assert {"plankeeper.cli.serve", "plankeeper.server.app"} <= imported
    assert {
        name for name in imported if f"{name}.".startswith(("plankeeper.cli.sample_data.", "plankeeper.cli.demo."))
    } == set()


def test_the_commands_import_the_library_for_metrics_only_when_the_folder_of_a_server_is_known() -> None:
    """It reads the folder when it is imported: `core/server_folder.py`."""
    program = f"{COMMANDS}print('prometheus_client' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["False"]
