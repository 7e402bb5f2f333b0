"""The examples of the OpenAPI document. They come from the sample data: `make examples` requests them from a server."""

import json
from pathlib import Path
from typing import Any

# Ids for paths, and bodies of requests and responses by the name of their schema.
EXAMPLES: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("examples.json").read_text())
