"""`make sbom` names each package of a server, with its version and its hashes."""

import json
import re
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[3]


def test_the_document_has_the_packages_of_the_lock(tmp_path: Path) -> None:
    makefile = (PROJECT / "Makefile").read_text()
    match = re.search(r"\$\(BIN\)/(cyclonedx-py .*?)--output-file", makefile.replace("\\\n", " "))
    assert match
    program, *arguments = match[1].split()
    file = tmp_path / "plankeeper.cdx.json"
    command = [Path(sys.executable).with_name(program), *arguments, "--output-file", file]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    document = json.loads(file.read_text())
    locked = dict(re.findall(r"^([\w.-]+)==(\S+)", (PROJECT / "requirements.lock").read_text(), re.MULTILINE))
    assert document["bomFormat"] == "CycloneDX"
    assert {each["name"]: each["version"] for each in document["components"]} == locked
    for each in document["components"]:
        hashes = [entry["alg"] for reference in each["externalReferences"] for entry in reference.get("hashes", ())]
        assert set(hashes) == {"SHA-256"}
