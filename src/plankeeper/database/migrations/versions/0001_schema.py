"""The first schema, which 0001_schema.sql describes."""

import re
from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None

# A statement ends with a semicolon before a line that isn't indented.
_END_OF_STATEMENT = re.compile(r";\n(?! )")


def upgrade() -> None:
    for statement in filter(None, _END_OF_STATEMENT.split(Path(__file__).with_suffix(".sql").read_text())):
        op.execute(statement)
