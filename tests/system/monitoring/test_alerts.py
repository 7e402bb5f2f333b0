"""The alerts and the dashboard in `packaging/`: Prometheus accepts them, they fire when they should, and they exist."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from plankeeper.core.settings import Settings
from plankeeper.server.app import build_app
from plankeeper.server.metrics import registry
from support.pages import PROJECT, section, table_rows

ALERTS = PROJECT / "packaging/prometheus/alerts.yml"
DASHBOARD = PROJECT / "packaging/grafana/dashboard.json"
CASES = Path(__file__).with_name("alerts_test.yml")
METRIC = re.compile(r"\bplankeeper_\w+")


@pytest.fixture(scope="module")
def promtool() -> str:
    """Debian's promtool. It is required with CI set."""
    found = shutil.which("promtool")
    if found is None and not os.environ.get("CI"):
        pytest.skip("no promtool: apt-get install prometheus")
    assert found, "no promtool: apt-get install prometheus"
    return found


@pytest.fixture(scope="module")
def exposed() -> set[str]:
    """The names of all samples of a server that has served no request."""
    build_app(Settings.read({}))
    return {sample.name for family in registry().collect() for sample in family.samples}


def backup_metrics() -> set[str]:
    """The metrics that the nightly backup writes to a file, and no server exposes."""
    return set(re.findall(r"^# TYPE (\w+)", (PROJECT / "packaging/backup.sh").read_text(), re.MULTILINE))


def alert_names() -> set[str]:
    return set(re.findall(r"- alert: (\w+)", ALERTS.read_text()))


def run(*arguments: object) -> None:
    done = subprocess.run([str(each) for each in arguments], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_accepts_the_rules(promtool: str) -> None:
    run(promtool, "check", "rules", ALERTS)


def test_each_alert_fires_when_it_should_and_only_then(promtool: str) -> None:
    run(promtool, "test", "rules", CASES)


def test_an_alert_that_does_not_fire_is_noticed(promtool: str, tmp_path: Path) -> None:
    later = ALERTS.read_text().replace("sequencing_lag_seconds) > 30", "sequencing_lag_seconds) > 3000")
    assert later != ALERTS.read_text()
    (tmp_path / "alerts.yml").write_text(later)
    (tmp_path / CASES.name).write_text(CASES.read_text().replace("../../../packaging/prometheus/", ""))
    with pytest.raises(AssertionError, match="PlankeeperEventsDelayed"):
        run(promtool, "test", "rules", tmp_path / CASES.name)


def test_each_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not() -> None:
    cases = CASES.read_text()
    assert set(re.findall(r"alertname: (\w+)\n +exp_alerts", cases)) == alert_names()
    assert set(re.findall(r"alertname: (\w+)\}", cases)) == alert_names()


def test_each_metric_of_the_rules_exists(exposed: set[str]) -> None:
    used = set(METRIC.findall("\n".join(re.findall(r"expr: (.+(?:\n {10}.+)*)", ALERTS.read_text()))))
    assert len(used) > 10
    assert used - exposed - {"plankeeper_http_request_duration_seconds_bucket", *backup_metrics()} == set()


def test_each_metric_of_the_dashboard_exists(exposed: set[str]) -> None:
    used = {name for each in expressions(json.loads(DASHBOARD.read_text())) for name in METRIC.findall(each)}
    assert len(used) > 20
    assert used - exposed - {"plankeeper_http_request_duration_seconds_bucket", *backup_metrics()} == set()


def test_the_dashboard_shows_every_metric(exposed: set[str]) -> None:
    used = {name for each in expressions(json.loads(DASHBOARD.read_text())) for name in METRIC.findall(each)}
    ours = {name for name in exposed if name.startswith("plankeeper_") and not name.endswith(("_created", "_sum"))}
    assert {name for name in ours - used if not name.endswith("_count")} == set()


def test_prometheus_accepts_the_expressions_of_the_dashboard(promtool: str, tmp_path: Path) -> None:
    found = expressions(json.loads(DASHBOARD.read_text()))
    assert len(found) > 30
    rules = [
        {"record": f"dashboard:{number}", "expr": each.replace("$__rate_interval", "1m")}
        for number, each in enumerate(found)
        if not each.startswith("label_values(")
    ]
    (tmp_path / "rules.yml").write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    run(promtool, "check", "rules", tmp_path / "rules.yml")


def test_the_page_explains_each_alert() -> None:
    rows = [
        row
        for row in table_rows(section("docs/operations/monitoring.md", "Alerts"))
        if row[0].startswith("`Plankeeper")
    ]
    assert {row[0].strip("`") for row in rows} == alert_names()


def test_the_page_describes_each_metric(exposed: set[str]) -> None:
    rows = [
        row
        for row in table_rows(section("docs/operations/monitoring.md", "Metrics"))
        if row[0].startswith("`plankeeper_")
    ]
    ours = {name for name in exposed if name.startswith("plankeeper_") and not name.endswith("_created")}
    parts = re.compile(r"(?<=plankeeper_http_request_duration_seconds)_(bucket|count|sum)$")
    expected = {parts.sub("", name) for name in ours} | {"plankeeper_http_request_duration_seconds"}
    assert {row[0].strip("`") for row in rows} == expected


def expressions(dashboard: Any) -> list[str]:
    """The queries of all panels and variables."""
    found: list[str] = []
    if isinstance(dashboard, dict):
        found += [dashboard[name] for name in ("expr", "definition") if isinstance(dashboard.get(name), str)]
        dashboard = list(dashboard.values())
    if isinstance(dashboard, list):
        found += [each for item in dashboard for each in expressions(item)]
    return found
