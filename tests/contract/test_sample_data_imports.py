"""The sample data is imported only by the commands that need it."""

import subprocess
import sys

from contract.sources import imports, modules


def test_only_the_module_that_loads_the_sample_data_imports_it() -> None:
    importing = {
        module.name
        for module in modules()
        if module.name.partition(".")[0] != "demo"
        if any(f"{name}.".startswith("plankeeper.demo.") for name in imports(module))
    }
    assert importing == {"cli.demo"}


def test_neither_the_commands_nor_the_application_import_the_sample_data() -> None:
    program = "import sys, plankeeper.cli, plankeeper.app; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    imported = set(done.stdout.split())
    assert {"plankeeper.cli.serve", "plankeeper.app"} <= imported
    assert {name for name in imported if f"{name}.".startswith(("plankeeper.demo.", "plankeeper.cli.demo."))} == set()
