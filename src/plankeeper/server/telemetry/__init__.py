"""OpenTelemetry: traces of requests, statements and webhooks, and errors as log records, exported by OTLP.

Only `setup` is imported while `PLANKEEPER_TELEMETRY` is off. The others need the extra
`plankeeper[telemetry]`.
"""
