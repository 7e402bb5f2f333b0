"""Starts telemetry if the settings turn it on. While it is off, nothing of OpenTelemetry is imported."""

from typing import TYPE_CHECKING

from plankeeper.core.settings import Settings

if TYPE_CHECKING:
    from plankeeper.server.telemetry.exporters import Telemetry


def start(settings: Settings) -> "Telemetry | None":
    """The telemetry of this process, or None if it is off."""
    if not settings.telemetry:
        return None
    from plankeeper.server.telemetry.exporters import Telemetry

    return Telemetry()
