"""Upload a run to a store: while it is recorded (``run --out s3://...``), or later (``runs upload``)."""

from __future__ import annotations

import argparse
import shlex
from subprocess import Popen

from jaxscope.cli.stderr import print_message
from jaxscope.errors import LogError
from jaxscope.log import remote, store
from jaxscope.log.store import RunDir
from jaxscope.present.escape import escape


def begin(record: RunDir | None, opts: argparse.Namespace) -> Popen[bytes] | None:
    """Start the process that uploads ``record`` while the program runs, and return it. Return None if nothing
    is recorded, if ``--out`` is not an address in a store (``s3://...``), or if no process can be started."""
    if record is None or not remote.is_remote(opts.out):
        return None
    from jaxscope.launch import upload

    return upload.start(record, opts.out, overwrite=bool(opts.overwrite))


def finish(uploading: Popen[bytes] | None, record: RunDir | None, opts: argparse.Namespace) -> None:
    """Wait for ``uploading``, the process from ``begin``, for a limited time. If not all files were uploaded,
    print what is missing, and the command that uploads it later; else print that all were, unless
    ``--quiet``."""
    if record is None or not remote.is_remote(opts.out):
        return
    from jaxscope.launch import upload
    from jaxscope.present.text import count, size

    state = upload.finish(uploading, record)
    if state.error is None and not state.files:
        if not opts.quiet:
            print_message(f"uploaded to {escape(opts.out)}")
        return
    left = (
        f"{count(state.files, 'file')}, {size(state.bytes)}"
        if state.files
        else "it is unknown which files are there"
    )
    print_message(
        f"not uploaded to {escape(opts.out)}: {left} ({escape(state.error or 'unknown reason')})",
        f"later: jaxscope runs upload {shlex.quote(store.address(record))} {shlex.quote(opts.out)}",
    )


def handle(args: argparse.Namespace) -> int:
    """Run ``jaxscope runs upload``: copy the files of a run, or of all ranks (processes) of a job, to a store
    (``s3://...``). Files that the store has already are not sent again. Return 0.

    Raises:
      JaxscopeError: there is no such run, or the store cannot be written.
    """
    from jaxscope.present.text import size

    remote.require(args.url)
    found = store.find(args.run)
    sent = 0
    for place in store.rank_runs(found) or [found]:
        uploading = remote.Upload(place.path, args.url, overwrite=args.overwrite)
        try:
            uploading.round()
        except OSError as e:
            raise LogError(
                f"{escape(args.url)}: {remote.one_line(e)}",
                hint="run the command again: it sends what is not there yet",
                slug="remote-unwritable",
            ) from e
        sent += uploading.sent
    print_message(f"{size(sent)} uploaded to {escape(args.url)}")
    return 0
