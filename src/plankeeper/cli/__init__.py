"""The command line. Each module holds one command group; the work is done by the same services as the API's."""

import sys
from importlib import import_module

import click

from plankeeper.core.interrupts import end_on_interrupt
from plankeeper.core.version import full_version

# The module of each command, and its name there.
COMMANDS = {
    "serve": ("serve", "serve"),
    "webhook-worker": ("webhook_worker", "webhook_worker"),
    "listen": ("listen", "listen"),
    "migrate": ("maintenance", "migrate"),
    "distribute": ("citus", "distribute"),
    "privileges": ("privileges", "privileges"),
    "doctor": ("doctor", "doctor"),
    "plan-managers": ("plan_managers", "plan_managers"),
    "participants": ("participants", "participants"),
    "bank-details": ("bank_details", "bank_details"),
    "invoices": ("invoices", "invoices"),
    "keys": ("api_keys", "keys"),
    "accounts": ("accounts", "accounts"),
    "sso": ("single_sign_on", "sso"),
    "mail": ("mail", "mail"),
    "secret-key": ("secret_keys", "secret_key"),
    "import": ("import_export", "import_"),
    "export": ("import_export", "export_"),
    "support-catalogue": ("support_catalogue", "support_catalogue"),
    "recheck": ("maintenance", "recheck"),
    "after-restore": ("backup", "after_restore"),
    "backup": ("backup", "backup"),
    "restore": ("backup", "restore"),
    "openapi": ("maintenance", "openapi"),
}


class Commands(click.Group):
    """The commands. The module of a command is imported when it runs, so that each starts quickly."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click passes it
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        # Click suggests one of the commands that it knows instead of an unknown one.
        for name in (cmd_name,) if cmd_name in COMMANDS else COMMANDS:
            self._load(name)
        return super().get_command(ctx, cmd_name)

    def _load(self, name: str) -> None:
        if name in self.commands:
            return
        module, function = COMMANDS[name]
        with end_on_interrupt():
            self.add_command(getattr(import_module(f"plankeeper.cli.{module}"), function), name)


@click.group(cls=Commands)
@click.version_option(full_version(), prog_name="plankeeper")
@click.option("--traceback", is_flag=True, help="Show the traceback of an unexpected error.")
def plankeeper(traceback: bool) -> None:  # main() reads the flag from sys.argv
    """A plan manager's system of record with an HTTP JSON API."""


def main() -> None:
    """Run the command line. An error is printed as one sentence; only --traceback shows a traceback."""
    try:
        plankeeper(prog_name="plankeeper", standalone_mode=False)
    except click.exceptions.Exit as end:
        sys.exit(end.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except OSError as error:
        # Standard output is full, or the current directory was deleted: the system's message explains it.
        click.ClickException(f"{error.strerror or error}.").show()
        sys.exit(1)
    except Exception as error:
        if "--traceback" in sys.argv:
            raise
        message = f"Unexpected {type(error).__name__}: {error}. Run `plankeeper --traceback ...` to see the traceback."
        click.ClickException(message).show()
        sys.exit(1)
