"""Dumps of databases as SQL statements, to compare them or to search them."""

import re
import subprocess

from plankeeper.server.embedded_postgres import binaries

# Lines that depend on the program that dumped, and psql's own commands.
_NOISE = re.compile(r"^(--.*|SET .*|SELECT pg_catalog\.set_config\(.*|\\.*|)\n", re.MULTILINE)


def dump(dsn: str, *options: str) -> str:
    """The whole database as statements without comments: `--schema-only` for the schema alone."""
    program = binaries.find(None, None).folder / "pg_dump"
    command = [program, "--inserts", "--no-owner", "--no-privileges", *options, f"--dbname={dsn}"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return _NOISE.sub("", text)
