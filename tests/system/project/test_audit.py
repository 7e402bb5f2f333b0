"""`scripts/audit.sh` with pip-audit and a local advisory service: what it finds, and when it fails."""

import json
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from support.ports import free_port

LOCK = "example-package==1.0.0 --hash=sha256:" + "0" * 64 + "\n"
VULNERABILITY = {
    "id": "GHSA-xxxx-xxxx-xxxx",
    "summary": "It is vulnerable.",
    "details": "It is vulnerable.",
    "aliases": ["CVE-2026-0001"],
    "published": "2026-01-01T00:00:00Z",
    "modified": "2026-01-01T00:00:00Z",
    "affected": [
        {
            "package": {"name": "example-package", "ecosystem": "PyPI", "purl": "pkg:pypi/example-package"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "1.0.1"}]}],
        }
    ],
}


class AdvisoryService:
    """OSV's API: every question gets the same response."""

    def __init__(self) -> None:
        self.response: tuple[int, Any] = (200, {})
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                status, content = service.response
                body = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"


@pytest.fixture
def service() -> Iterator[AdvisoryService]:
    service = AdvisoryService()
    thread = threading.Thread(target=service.server.serve_forever, daemon=True)
    thread.start()
    yield service
    service.server.shutdown()
    service.server.server_close()
    thread.join()


def run_audit(tmp_path: Path, project: Path, url: str, lock: str = LOCK) -> subprocess.CompletedProcess[str]:
    file = tmp_path / "test.lock"
    file.write_text(lock)
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "AUDIT_SERVICES": "osv", "OSV_URL": url}
    return subprocess.run(
        [project / "scripts" / "audit.sh", str(file)], capture_output=True, text=True, env=environment, check=False
    )


@pytest.fixture(scope="module")
def project() -> Path:
    return Path(__file__).parents[3]


def test_a_known_vulnerability_fails_and_is_named(tmp_path: Path, project: Path, service: AdvisoryService) -> None:
    service.response = (200, {"vulns": [VULNERABILITY]})
    done = run_audit(tmp_path, project, service.url)
    assert done.returncode == 1, done
    assert "example-package 1.0.0 has the known vulnerability " in done.stdout
    assert ", fixed in 1.0.1." in done.stdout
    assert "1 known vulnerabilities in 1 dependencies, according to osv." in done.stdout


def test_no_known_vulnerability_passes(tmp_path: Path, project: Path, service: AdvisoryService) -> None:
    done = run_audit(tmp_path, project, service.url)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(": 0 known vulnerabilities in 1 dependencies, according to osv.\n")


def test_without_an_advisory_service_it_says_so_and_passes(tmp_path: Path, project: Path) -> None:
    done = run_audit(tmp_path, project, f"http://127.0.0.1:{free_port()}/")
    assert done.returncode == 0, done
    warning = done.stdout.splitlines()[-1]
    assert warning.startswith("WARNING: ")
    assert warning.startswith(
        "WARNING: NOT CHECKED for known vulnerabilities, because no advisory service could be used: "
    )


def test_a_service_that_fails_counts_as_unreachable(tmp_path: Path, project: Path, service: AdvisoryService) -> None:
    service.response = (500, {})
    done = run_audit(tmp_path, project, service.url)
    assert done.returncode == 0, done
    assert "NOT CHECKED" in done.stdout


@pytest.mark.parametrize("lock", ["example-package==1.0.0\n", "not a requirement ==\n"])
def test_an_unreadable_lock_fails(tmp_path: Path, project: Path, service: AdvisoryService, lock: str) -> None:
    done = run_audit(tmp_path, project, service.url, lock)
    assert done.returncode == 1, done
    assert "osv failed: " in done.stdout
