"""The file of secret keys: created once, replaced in one step, and readable only by its owner."""

import os
import stat
from pathlib import Path

import pytest

from plankeeper.core.encryption.cipher import (
    KeyFileError,
    SecretKey,
    create_key_file,
    has_open_permissions,
    read_keys,
    replace_keys,
)


@pytest.fixture(autouse=True)
def open_umask() -> object:
    previous = os.umask(0)
    yield
    os.umask(previous)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_created_file_has_one_key_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "secret.keys"
    key = create_key_file(path)
    assert read_keys(path) == [key]
    assert len(key.value) == 32
    assert mode_of(path) == 0o600
    assert not has_open_permissions(path)
    assert [each.name for each in tmp_path.iterdir()] == ["secret.keys"]


def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "secret.keys"
    key = create_key_file(path)
    with pytest.raises(KeyFileError, match=f"{path} already exists"):
        create_key_file(path)
    assert read_keys(path) == [key]
    dangling = tmp_path / "link"
    dangling.symlink_to(tmp_path / "nowhere")
    with pytest.raises(KeyFileError, match="already exists"):
        create_key_file(dangling)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link", "secret.keys"]


def test_replaced_keys_keep_their_order_and_the_mode(tmp_path: Path) -> None:
    path = tmp_path / "secret.keys"
    keys = [SecretKey.generate(), create_key_file(path)]
    path.chmod(0o644)
    assert has_open_permissions(path)
    replace_keys(path, keys)
    assert read_keys(path) == keys
    assert mode_of(path) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["secret.keys"]


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    path, link = tmp_path / "secret.keys", tmp_path / "link"
    keys = [SecretKey.generate(), create_key_file(path)]
    link.symlink_to(path)
    replace_keys(link, keys)
    assert link.is_symlink()
    assert read_keys(path) == keys


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_a_file_keeps_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "secret.keys"
    keys = [create_key_file(path), SecretKey.generate()]
    os.chown(path, 12345, 23456)
    replace_keys(path, keys)
    assert (path.stat().st_uid, path.stat().st_gid, mode_of(path)) == (12345, 23456, 0o600)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "secret.keys"
    with pytest.raises(KeyFileError, match=f"Cannot write the key file {path}: No such file or directory."):
        create_key_file(path)
    with pytest.raises(KeyFileError, match=f"Cannot write the key file {path}: No such file or directory."):
        replace_keys(path, [SecretKey.generate()])


def test_comments_and_blank_lines_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "secret.keys"
    key = create_key_file(path)
    [line] = [each for each in path.read_text().splitlines() if each.startswith(key.id)]
    path.write_text(f"\n  # a comment\r\n  {line}  \n\n")
    assert read_keys(path) == [key]


def test_a_damaged_or_repeated_key_is_reported_without_the_key(tmp_path: Path) -> None:
    path = tmp_path / "secret.keys"
    key = create_key_file(path)
    [line] = [each for each in path.read_text().splitlines() if each.startswith(key.id)]
    replacement = "A" if line[20] != "A" else "B"
    damaged_lines = {
        line[:-3],
        line[9:],
        f"{line}=",
        line[:20] + replacement + line[21:],
        "secret",
        f"00000000{line[8:]}",
    }
    for damaged in damaged_lines:
        path.write_text(f"# keys\n{damaged}\n")
        with pytest.raises(KeyFileError) as error:
            read_keys(path)
        assert str(error.value) == f"Line 2 of the key file {path} is not a valid key, or is damaged."
    path.write_text(f"{line}\n{line}\n")
    with pytest.raises(KeyFileError, match=f"The key file {path} contains a key twice."):
        read_keys(path)
    path.write_text("# no key\n")
    with pytest.raises(KeyFileError, match=f"The key file {path} contains no key."):
        read_keys(path)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_keys(tmp_path / "missing")
    with pytest.raises(KeyFileError, match=f"Cannot read the key file {tmp_path}: Is a directory."):
        read_keys(tmp_path)
