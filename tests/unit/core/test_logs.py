"""Log lines: JSON with an exception's class and SQLSTATE, and never its text."""

import asyncio
import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from plankeeper.core.logs import LEVELS, JsonFormatter, is_request_logged

SECRET = "Quartermaine"


def format_line(level: int, message: object, *args: object, name: str = "plankeeper", **more: Any) -> dict[str, Any]:
    error = more.pop("exc_info", None)
    exc_info = (type(error), error, error.__traceback__) if error else None
    record = logging.getLogger(name).makeRecord(name, level, __file__, 1, message, args, exc_info, extra=more)
    line = JsonFormatter().format(record)
    assert SECRET not in line
    assert "\n" not in line
    return json.loads(line)


def raised(error: Exception) -> Exception:
    try:
        raise error
    except Exception as caught:  # noqa: BLE001 - any kind
        return caught


def test_a_problem_of_a_request_is_structured() -> None:
    error = raised(asyncpg.DiskFullError(f"could not extend file of {SECRET}"))
    line = format_line(logging.WARNING, "the database is unavailable", exc_info=error, request_id="r-1")
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "warning", "event": "the database is unavailable", "logger": "plankeeper", "request_id": "r-1",
        "error": "DiskFullError", "sqlstate": "53100",
    }  # fmt: skip


def test_an_error_has_its_places_in_the_code() -> None:
    line = format_line(logging.ERROR, "the request failed", exc_info=raised(ValueError(SECRET)))
    assert (line["error"], line["sqlstate"]) == ("ValueError", None)
    [place] = line["places"]
    assert place.endswith(" raised")


@pytest.mark.parametrize(
    "message, args, event",
    [
        (ValueError(SECRET), (), "ValueError"),
        ("cannot load: %s", (ValueError(SECRET),), "cannot load: %s"),
        ("%d of %s", (3, "four"), "3 of four"),
    ],
)
def test_an_exception_in_a_librarys_message_is_left_out(message: object, args: tuple[object, ...], event: str) -> None:
    assert format_line(logging.ERROR, message, *args, name="uvicorn.error")["event"] == event


def test_asyncios_reports_are_cut(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(_text: str) -> None:
        raise ValueError(SECRET)

    def fail_in_callback(_text: str) -> None:
        raise ValueError(SECRET)

    async def work() -> None:
        asyncio.get_running_loop().call_soon(fail_in_callback, SECRET)
        task = asyncio.create_task(fail(SECRET))
        await asyncio.sleep(0.01)
        del task

    asyncio.run(work())
    assert SECRET in caplog.text
    lines = [JsonFormatter().format(record) for record in caplog.records if record.name == "asyncio"]
    assert sorted(json.loads(line)["event"] for line in lines) == [
        "Exception in callback test_asyncios_reports_are_cut.", "Task exception was never retrieved",
    ]  # fmt: skip
    assert not [line for line in lines if SECRET in line]


def test_only_a_level_below_warning_writes_requests() -> None:
    assert [level for level in LEVELS if is_request_logged(level)] == ["debug", "info"]


PROGRAM = """
import logging, sys, threading, warnings
from plankeeper.core import logs
logs.configure(sys.argv[1], in_background=sys.argv[2] == "in background")
for name in ("plankeeper", "uvicorn.error", "httpcore"):
    for level in ("debug", "info", "warning", "error"):
        logging.getLogger(name).log(getattr(logging, level.upper()), "%s %s", name, level)
warnings.warn("careful")
thread = threading.Thread(target=lambda: int("Quartermaine"))
thread.start()
thread.join()
int("Quartermaine")
"""


@pytest.mark.parametrize("way", ["at once", "in background"])
@pytest.mark.parametrize(
    "level, own, uvicorn",
    [
        ("debug", ["debug", "info", "warning", "error"], ["info", "warning", "error"]),
        ("info", ["info", "warning", "error"], ["warning", "error"]),
        ("warning", ["warning", "error"], ["warning", "error"]),
        ("error", ["error"], ["error"]),
    ],
)
def test_everything_that_a_process_logs_is_json(way: str, level: str, own: list[str], uvicorn: list[str]) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, level, way], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert SECRET not in done.stderr
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    events = [line["event"] for line in lines]
    assert [each.split()[1] for each in events if each.startswith("plankeeper ")] == own
    assert [each.split()[1] for each in events if each.startswith("uvicorn.error ")] == uvicorn
    assert "httpcore info" not in events  # its lines contain headers and URLs
    assert [line["event"] for line in lines if line.get("error") == "ValueError"] == [
        "a thread failed", "the process failed",
    ]  # fmt: skip
    assert bool([each for each in events if "careful" in each]) == (level != "error")


WRITER = """
import logging, resource, signal
from plankeeper.core import logs
logs.configure(in_background=True)

def write(count):
    for number in range(count):
        logs.log.info("a line", extra={"number": number})
"""


def start_writer(program: str, stderr: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER + program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
    )


@pytest.mark.parametrize("is_blocking", [True, False])
def test_nobody_waits_for_a_reader_that_stops(is_blocking: bool) -> None:
    program = f"""
import os
os.set_blocking(2, {is_blocking})
logs.MAX_BUFFERED_BYTES = 200_000
write(5000)
print(logs.dropped_lines(), flush=True)
input()
"""
    with start_writer(program, subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        dropped = int(process.stdout.readline())  # before anything is read from the log
        process.stdin.write("\n")
        process.stdin.close()
        numbers = [json.loads(line)["number"] for line in process.stderr]
    assert process.returncode == 0
    assert dropped > 0
    assert numbers == list(range(5000 - dropped))


def test_lines_of_several_processes_are_whole() -> None:
    """Both have more to write than the pipe holds."""
    program = """
logs.FLUSH_TIMEOUT = 60
write(3000)
print(flush=True)
"""
    reader, writer = os.pipe()
    with os.fdopen(reader) as log, start_writer(program, writer) as first, start_writer(program, writer) as second:
        os.close(writer)
        for each in (first, second):
            assert each.stdout
            each.stdout.readline()
        numbers = [json.loads(line)["number"] for line in log]
    assert sorted(numbers) == sorted([*range(3000)] * 2)


def test_lines_that_do_not_fit_on_the_disk_are_dropped_and_counted() -> None:
    program = """
write(100)
logs.flush()
print(logs.dropped_lines())
"""
    with open("/dev/full", "w") as full, start_writer(program, full) as process:  # noqa: PTH123 - a device
        stdout, _ = process.communicate()
    assert (process.returncode, stdout) == (0, "100\n")


def test_a_line_that_was_cut_ends_before_the_next_one(tmp_path: Path) -> None:
    """A limit of the file's size cuts a line where a full disk would, and is then lifted."""
    program = """
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
write(30)
logs.flush()
write(3)
logs.flush()
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
write(5)
logs.flush()
print(logs.dropped_lines())
"""
    file = tmp_path / "log"
    with file.open("w") as stderr, start_writer(program, stderr) as process:
        stdout, _ = process.communicate()
    *before, cut = file.read_text()[:1000].splitlines()
    after = file.read_text()[1000:]
    assert not cut.endswith("}")
    assert [json.loads(line)["number"] for line in before] == list(range(len(before)))
    start, *lines = after.splitlines()
    assert start == ""
    assert [json.loads(line)["number"] for line in lines] == list(range(5))
    assert int(stdout) == 33 - len(before)
