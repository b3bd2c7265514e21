"""What is written replaces links and never follows them; what is read is a regular file inside its directory."""

import contextlib
import os
import stat
from pathlib import Path

import pytest

from jaxscope.log import files


def test_a_link_under_the_name_of_a_written_file_is_replaced_and_its_target_stays(tmp_path):
    (tmp_path / "precious").write_text("mine\n")
    (tmp_path / "out").symlink_to(tmp_path / "precious")
    files.write(tmp_path / "out", "new\n")
    assert (tmp_path / "precious").read_text() == "mine\n"
    assert (tmp_path / "out").read_text() == "new\n" and not (tmp_path / "out").is_symlink()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "precious"]


def test_nothing_is_left_of_a_file_that_could_not_take_its_place(tmp_path):
    (tmp_path / "out").mkdir()
    with pytest.raises(OSError) as e:
        files.write(tmp_path / "out", b"x")
    assert e.value.filename == str(tmp_path / "out")
    assert files.names(tmp_path) == ["out"]


def test_files_of_a_run_are_private_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        run = tmp_path / "a" / "run"
        files.make_directory(run, parents=True)
        files.make_directory(run / "x" / "y", within=run, parents=True)
        files.write(run / "x" / "y" / "f", b"", within=run)
        os.close(files.append(run / "log", within=run))
        files.touch(run / "beat", within=run)
        files.write(run / "asked for", b"", mode=files.SHARED)
    finally:
        os.umask(before)
    modes = {str(p.relative_to(tmp_path)): stat.S_IMODE(p.stat().st_mode) for p in tmp_path.rglob("*")}
    assert modes == {
        "a": 0o700, "a/run": 0o700, "a/run/x": 0o700, "a/run/x/y": 0o700, "a/run/x/y/f": 0o600,
        "a/run/log": 0o600, "a/run/beat": 0o600, "a/run/asked for": 0o666,
    }  # fmt: skip


@pytest.mark.parametrize("absolute", [True, False])
def test_no_function_passes_a_link_below_the_directory(tmp_path, absolute):
    outside, run = tmp_path / "outside", tmp_path / "run"
    outside.mkdir(), run.mkdir()
    (outside / "f").write_bytes(b"theirs")
    (run / "sub").symlink_to(outside if absolute else "../outside")
    (run / "f").symlink_to(outside / "f")
    for path in (run / "sub" / "f", run / "sub" / "new", run / ".." / "outside" / "f", outside / "f", run):
        for function in (
            lambda p: files.write(p, b"ours", within=run),
            lambda p: files.open_regular(p, within=run),
            lambda p: files.read(p, 100, within=run),
            lambda p: files.append(p, within=run),
            lambda p: files.touch(p, within=run),
            lambda p: files.remove(p, within=run),
            lambda p: files.rename(p, "g", within=run),
            lambda p: files.status(p, within=run),
        ):
            with pytest.raises(OSError):
                function(path)
    for function in (files.open_regular, files.append, files.touch, files.status):
        with pytest.raises(OSError):
            function(run / "f", within=run)
    for path in (run / "sub", run / "sub" / "deeper", outside):
        with pytest.raises(OSError):
            files.make_directory(path, within=run, parents=True)
        with pytest.raises(OSError):
            files.names(path, within=run)
    assert files.names(outside) == ["f"] and (outside / "f").read_bytes() == b"theirs"
    files.remove(run / "f", within=run)
    assert (outside / "f").exists() and files.names(run, within=run) == ["sub"]


def test_a_pipe_a_device_and_a_directory_are_no_files(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "directory").mkdir()
    (tmp_path / "zero").symlink_to("/dev/zero")
    for path in (tmp_path / "pipe", tmp_path / "directory", tmp_path / "zero", Path("/dev/null")):
        for function in (files.open_regular, files.append, files.touch, files.status):
            with pytest.raises(OSError):
                function(path)
        assert not files.is_regular(path)


def test_what_is_written_never_takes_the_place_of_a_pipe_or_a_device(tmp_path):
    special = [tmp_path / "pipe"]
    os.mkfifo(special[0])
    if os.geteuid() == 0:
        with contextlib.suppress(OSError):  # a container may forbid it
            os.mknod(tmp_path / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
            special.append(tmp_path / "null")
    for path in special:
        before = path.lstat()
        with pytest.raises(OSError, match="not a regular file"):
            files.write(path, b"text")
        assert (path.lstat().st_mode, path.lstat().st_ino) == (before.st_mode, before.st_ino)
    assert sorted(files.names(tmp_path)) == sorted(p.name for p in special)


def test_a_descriptor_named_below_dev_is_written_to(tmp_path):
    reader, writer = os.pipe()
    try:
        files.write(Path(f"/dev/fd/{writer}"), ["one ", "two"])
        assert os.read(reader, 100) == b"one two"
    finally:
        os.close(reader)
        os.close(writer)


def test_a_link_that_the_reader_names_is_followed(tmp_path):
    (tmp_path / "f").write_bytes(b"text")
    (tmp_path / "link").symlink_to("f")
    assert files.read(tmp_path / "link", 100) == b"text"
    with pytest.raises(OSError):
        files.append(tmp_path / "link")


def test_a_file_larger_than_requested_is_an_error(tmp_path):
    (tmp_path / "f").write_bytes(bytes(101))
    assert files.read(tmp_path / "f", 101) == bytes(101)
    with pytest.raises(OSError, match="larger than 100 bytes"):
        files.read(tmp_path / "f", 100)


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "x" * 300])
def test_a_name_that_no_file_can_have_is_an_os_error(tmp_path, name):
    for within in (None, tmp_path):
        with pytest.raises(OSError):
            files.open_regular(tmp_path / name, within=within)
        with pytest.raises(OSError):
            files.write(tmp_path / name, b"", within=within)


def test_a_name_of_255_bytes_can_be_written(tmp_path):
    files.write(tmp_path / ("n" * 255), b"x")
    assert files.read(tmp_path / ("n" * 255), 1) == b"x"
