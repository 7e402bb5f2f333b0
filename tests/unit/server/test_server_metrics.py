"""The metrics of all processes of a server, from their files."""

from pathlib import Path

from prometheus_client.mmap_dict import MmapedDict, mmap_key

from plankeeper.server.metrics import ServerCollector


def test_a_file_that_a_process_is_making_is_left_out(tmp_path: Path) -> None:
    made = MmapedDict(str(tmp_path / "counter_7.db"))
    made.write_value(mmap_key("requests", "requests_total", [], [], "Requests."), 3.0, 0.0)
    (tmp_path / "counter_8.db").touch()
    [metric] = ServerCollector(tmp_path).collect()
    assert [(each.name, each.value) for each in metric.samples] == [("requests_total", 3.0)]
    made.close()


def test_without_a_folder_there_are_none(tmp_path: Path) -> None:
    assert list(ServerCollector(tmp_path / "gone").collect()) == []
