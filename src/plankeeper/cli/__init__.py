"""The command line. Each module holds one command group; the work is done by the same services as the API's."""

import sys

import click

from plankeeper.cli.accounts import accounts
from plankeeper.cli.api_keys import keys
from plankeeper.cli.backup import backup, restore
from plankeeper.cli.bank_details import bank_details
from plankeeper.cli.citus import distribute
from plankeeper.cli.doctor import doctor
from plankeeper.cli.import_export import export_, import_
from plankeeper.cli.invoices import invoices
from plankeeper.cli.listen import listen
from plankeeper.cli.mail import mail
from plankeeper.cli.maintenance import migrate, openapi, recheck
from plankeeper.cli.participants import participants
from plankeeper.cli.plan_managers import plan_managers
from plankeeper.cli.privileges import privileges
from plankeeper.cli.secret_keys import secret_key
from plankeeper.cli.serve import serve
from plankeeper.cli.single_sign_on import sso
from plankeeper.cli.support_catalogue import support_catalogue
from plankeeper.cli.webhook_worker import webhook_worker
from plankeeper.core.version import full_version


@click.group()
@click.version_option(full_version(), prog_name="plankeeper")
@click.option("--traceback", is_flag=True, help="Show the traceback of an unexpected error.")
def plankeeper(traceback: bool) -> None:  # main() reads the flag from sys.argv
    """A plan manager's system of record with an HTTP JSON API."""


for command in (
    serve,
    webhook_worker,
    listen,
    migrate,
    distribute,
    privileges,
    doctor,
    plan_managers,
    participants,
    bank_details,
    invoices,
    keys,
    accounts,
    sso,
    mail,
    secret_key,
    import_,
    export_,
    support_catalogue,
    recheck,
    backup,
    restore,
    openapi,
):
    plankeeper.add_command(command)


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
