"""`plankeeper participants`: export and erasure of one person's data, and legal holds."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import click

from plankeeper.cli.context import require_plan_manager, system_context, with_database, write
from plankeeper.cli.documents import report_lost, write_files
from plankeeper.cli.parameter_types import NAME, UUID_TYPE, plan_manager_option
from plankeeper.core.errors import NotFound
from plankeeper.core.formatting import truncate
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database
from plankeeper.privacy import person_export, service
from plankeeper.privacy.person_export import PersonExport
from plankeeper.privacy.schemas import COUNT_LABELS, ErasureReport
from plankeeper.privacy.service import LegalHoldError

MAX_TEXT = 200  # characters of a mention

PARTICIPANT = click.argument("participant_id", metavar="ID", type=UUID_TYPE)
PLAN_MANAGER = plan_manager_option("The participant's plan manager.")


@click.group()
def participants() -> None:
    """Export or erase what is held about a participant, or hold it for legal reasons."""


@participants.command()
@PARTICIPANT
@PLAN_MANAGER
@click.option(
    "--format", "format_", type=click.Choice(["json", "html"]), default="json", help="json, or html: a page to read."
)
@click.option(
    "--documents",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Also write the files of the invoices' documents to this folder, each named by its id.",
)
def export_person(participant_id: UUID, plan_manager_id: UUID, format_: str, folder: Path | None) -> None:
    """Write everything that is held about a participant and its team to standard output.

    ID can be a participant that was deleted earlier.
    """

    async def work(db: Database, settings: Settings) -> PersonExport:
        await require_plan_manager(db, plan_manager_id)
        export = await person_export.export_person(db, plan_manager_id, participant_id)
        if folder:
            report_lost(await write_files(settings, export.documents, folder))
        async with db.transaction() as tx:
            ctx = await system_context(tx, settings, plan_manager_id, "participants export-person")
            await person_export.record_export(ctx, export)
        return export

    with _errors(participant_id):
        export = with_database(work)
    click.echo(person_export.to_page(export) if format_ == "html" else person_export.to_document(export), nl=False)


@participants.command()
@PARTICIPANT
@PLAN_MANAGER
@click.option("--yes", is_flag=True, help="Erase. Without this option, nothing is changed.")
def erase(participant_id: UUID, plan_manager_id: UUID, yes: bool) -> None:
    """Show what would be erased about a participant and its team; with --yes, erase it permanently.

    ID can be a participant that was deleted earlier.
    """
    erase_or_preview = service.erase if yes else service.preview_erasure
    with _errors(participant_id):
        report = write(
            plan_manager_id,
            "participants erase",
            lambda ctx: erase_or_preview(ctx, participant_id, search_events=True),
        )
    if report.is_empty:
        click.echo("Nothing is left to erase.")
    for kind, count in report.counts.items():
        if count:
            click.echo(f"{count:,} {COUNT_LABELS[kind][count != 1]}")
    if report.kept:
        click.echo(report.kept.text)
    _print_mentions(report)
    if not yes and not report.is_empty:
        click.echo("Nothing has been changed. To erase this permanently, repeat the command with --yes.")


def _print_mentions(report: ErasureReport) -> None:
    if not report.mentions:
        return
    number = f"More than {len(report.mentions)}" if report.more_mentions else len(report.mentions)
    click.echo(f"{number} texts in other records contain a name or another text of these people. Read them:")
    for each in report.mentions:
        text = " ".join(each.text.split())
        click.echo(f"  {each.table} {each.record_id} {each.column}: {truncate(text, MAX_TEXT)}")


@participants.command()
@PARTICIPANT
@PLAN_MANAGER
@click.option("--reason", type=NAME, required=True, help="Why the data must be kept, such as the number of a case.")
def hold(participant_id: UUID, plan_manager_id: UUID, reason: str) -> None:
    """Place a legal hold: the participant's data can't be erased until it is released."""
    with _errors(participant_id):
        write(plan_manager_id, "participants hold", lambda ctx: service.hold(ctx, participant_id, reason))
    click.echo(f"Held: {participant_id}")


@participants.command()
@PARTICIPANT
@PLAN_MANAGER
def release_hold(participant_id: UUID, plan_manager_id: UUID) -> None:
    """Release a legal hold."""
    try:
        write(plan_manager_id, "participants release-hold", lambda ctx: service.release_hold(ctx, participant_id))
    except NotFound:
        raise click.ClickException(f"There is no legal hold on participant {participant_id}.") from None
    click.echo(f"Released: {participant_id}")


@contextmanager
def _errors(participant_id: UUID) -> Generator[None]:
    try:
        yield
    except NotFound:
        raise click.ClickException(
            f"There is no participant {participant_id} with this plan manager, and no event of one."
        ) from None
    except LegalHoldError as error:
        raise click.ClickException(f"{error}. To end it, run `plankeeper participants release-hold`.") from None
