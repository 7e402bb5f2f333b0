"""Documents of the largest size pass through a worker without being held in its memory."""

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from support.folder import temporary_folder
from support.program import ServeProcess

MIB = 1024**2
CONTENT = b"%PDF-1.7 ".ljust(20 * MIB, b"\0")


@pytest.fixture
def serving(copy_sample_data: Callable[[Path], None]) -> Iterator[ServeProcess]:
    with temporary_folder() as folder:
        copy_sample_data(folder)
        running = ServeProcess(folder, "--demo", workers=1)
        yield running
        assert running.stop() == 0


def peak_memory(process_id: int) -> int:
    """The most memory that a process has had since the last call, in bytes."""
    status = Path(f"/proc/{process_id}/status").read_text()
    [peak] = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")]
    Path(f"/proc/{process_id}/clear_refs").write_text("5")
    return int(peak) * 1024


def test_a_document_of_20_mib_is_received_and_sent_with_flat_memory(serving: ServeProcess) -> None:
    [worker] = serving.workers()
    headers = {
        "Authorization": f"Bearer {serving.output_value('API key:')}",
        "X-Plan-Manager-Id": serving.output_value("Plan manager:"),
    }
    with httpx.Client(base_url=f"{serving.url}/api/public/v1", headers=headers, timeout=60) as client:
        ident = client.get("/invoices?limit=1").json()["data"][0]["id"]
        url = f"/invoices/{ident}/document"
        client.put(url, content=b"%PDF-1.7 ".ljust(MIB, b"\0")).raise_for_status()  # what is made once is made
        assert len(client.get(url).content) == MIB
        peak_memory(worker.pid)
        before = worker.memory_info().rss
        client.put(url, content=CONTENT).raise_for_status()
        upload = peak_memory(worker.pid) - before
        with client.stream("GET", url) as response:
            assert sum(map(len, response.iter_bytes(MIB))) == len(CONTENT)
        download = peak_memory(worker.pid) - before
    assert max(upload, download) < len(CONTENT) / 2, (upload, download)
