"""The usual linters of OpenAPI documents find nothing in openapi.json."""

from pathlib import Path

from system.openapi.tools import DOCUMENT, run


def test_spectral_reports_nothing(tmp_path: Path) -> None:
    (tmp_path / "ruleset.yaml").write_text("extends: ['spectral:oas']\n")
    done = run(
        "spectral", "lint", "--ruleset", "ruleset.yaml", "--fail-severity", "hint", str(DOCUMENT), folder=tmp_path
    )
    assert (done.returncode, done.stdout.strip()) == (0, "No results with a severity of 'hint' or higher found!")


def test_redocly_reports_nothing(tmp_path: Path) -> None:
    done = run("redocly", "lint", "--extends", "recommended-strict", "--format", "json", str(DOCUMENT), folder=tmp_path)
    assert (done.returncode, '"problems": []' in done.stdout) == (0, True), done.stdout
