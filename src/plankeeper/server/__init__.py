"""The processes of a server and their parts: application, background tasks, supervisor, metrics, telemetry."""
