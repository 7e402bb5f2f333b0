"""`packaging/compose/compose.yaml`: its files exist, and its commands work. No container runs here."""

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from plankeeper.core.encryption.cipher import read_keys
from plankeeper.core.settings import Settings
from plankeeper.server.embedded_postgres.binaries import installed_dir
from support.cluster import SharedCluster, execute
from support.pages import PROJECT
from support.program import environment

FOLDER = PROJECT / "packaging/compose"
COMPOSE: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
PASSWORDS = {"POSTGRES_PASSWORD": "one", "OWNER_PASSWORD": "it's two", "PLANKEEPER_PASSWORD": "three"}


def expand(value: str) -> str:
    """A value with the variables of `.env`. Each of them is required."""
    return re.sub(r"\$\{(\w+):\?[^}]+\}", lambda match: PASSWORDS[match[1]], value)


def test_what_the_services_refer_to_exists() -> None:
    for service in SERVICES.values():
        assert set(service.get("depends_on", ())) <= set(SERVICES)
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            assert (FOLDER / source).is_file() if source.startswith(".") else source in COMPOSE["volumes"]
    build = SERVICES["prepare"]["build"]
    assert (FOLDER / build["context"] / build["dockerfile"]).resolve() == PROJECT / "packaging/Containerfile"


def test_the_images_have_versions_and_only_the_proxy_has_a_port_on_this_machine() -> None:
    images = {name: each["image"] for name, each in SERVICES.items()}
    assert {name for name, image in images.items() if image != "plankeeper" and ":" not in image} == set()
    ports = {name: each["ports"] for name, each in SERVICES.items() if "ports" in each}
    assert ports == {"proxy": ["127.0.0.1:8080:8080"]}


def test_the_settings_are_valid() -> None:
    for name in ("prepare", "plankeeper"):
        values = {key: expand(value) for key, value in SERVICES[name]["environment"].items()}
        assert set(values) <= {each.metadata["name"] for each in fields(Settings)}
        assert Settings.read(values).trusted_proxies


def test_the_server_can_write_to_its_volumes() -> None:
    text = (PROJECT / "packaging/Containerfile").read_text()
    [(user, group, folders)] = re.findall(
        r"^RUN install --directory --owner=(\d+) --group=(\d+) (.+)$", text, re.MULTILINE
    )
    assert f"USER {user}:{group}\n" in text
    service = SERVICES["plankeeper"]
    assert [each.partition(":")[2] for each in service["volumes"]] == folders.split()
    settings = Settings.read({key: expand(value) for key, value in service["environment"].items()})
    assert str(settings.documents_url) == "file:///documents"


def test_nginx_accepts_the_proxy_s_configuration(tmp_path: Path) -> None:
    text = (FOLDER / "nginx.conf").read_text()
    file = tmp_path / "nginx.conf"
    file.write_text(f"pid {tmp_path}/pid;\n" + text.replace("server plankeeper:8000", "server 127.0.0.1:8000"))
    done = subprocess.run(["/usr/sbin/nginx", "-t", "-q", "-c", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def socket_folder(cluster: SharedCluster) -> Iterator[str]:
    yield parse_qs(urlsplit(cluster.dsn).query)["host"][0]
    execute(
        cluster.dsn,
        "drop database if exists composed with (force)",
        "drop role if exists composed_owner",
        "drop role if exists composed",
    )


def test_the_services_prepare_the_database_and_the_key_file(
    cluster: SharedCluster, socket_folder: str, tmp_path: Path
) -> None:
    script = tmp_path / "roles.sh"
    # The cluster of the tests has a role with the name of the product already.
    script.write_text((FOLDER / "roles.sh").read_text().replace("plankeeper", "composed"))
    programs = {"PATH": f"{installed_dir(None)}:{Path(sys.executable).parent}:/usr/bin:/bin", "PGHOST": socket_folder}
    done = subprocess.run(["sh", script], env=programs | PASSWORDS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    _, _, command = SERVICES["prepare"]["entrypoint"]
    settings = {
        "PLANKEEPER_DATABASE_URL": f"postgresql:///composed?host={socket_folder}&user=composed",
        "PLANKEEPER_OWNER_DATABASE_URL": f"postgresql:///composed?host={socket_folder}&user=composed_owner",
    }
    for output in ("The schema is now ", "The schema is already "):  # the second start changes nothing
        done = subprocess.run(
            ["sh", "-c", command.replace("/keys/", f"{tmp_path}/")],
            env=environment(settings) | programs, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (done.returncode, output in done.stdout) == (0, True), done.stdout + done.stderr
    assert len(read_keys(tmp_path / "secret.keys")) == 1
