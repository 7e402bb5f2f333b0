"""The sample data is imported only by the commands that need it."""

import subprocess
import sys

from contract.sources import imports, modules


def test_only_the_module_that_loads_the_sample_data_imports_it() -> None:
    importing = {
        module.name
        for module in modules()
        if not module.name.startswith("cli.sample_data.")
        if any(f"{name}.".startswith("plankeeper.cli.sample_data.") for name in imports(module))
    }
    assert importing == {"cli.demo"}


def test_neither_the_commands_nor_the_application_import_the_sample_data() -> None:
    program = "import sys, plankeeper.cli, plankeeper.server.app; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    imported = set(done.stdout.split())
    assert {"plankeeper.cli.serve", "plankeeper.server.app"} <= imported
    assert {
        name for name in imported if f"{name}.".startswith(("plankeeper.cli.sample_data.", "plankeeper.cli.demo."))
    } == set()
