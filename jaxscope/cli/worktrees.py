"""Check out versions of a git repository into a temporary directory, without changing the user's checkout.

Git objects for uncommitted changes are stored in the temporary directory, not in the user's repository. The
temporary checkout is a worktree of the repository, which git lists while it exists. Hooks of the repository
are not run.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from jaxscope.errors import UsageError
from jaxscope.log import files, store

_QUIET = ("-c", "core.hooksPath=" + os.devnull, "-c", "advice.detachedHead=false", "-c", "gc.auto=0")
_FROM_GIT = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")  # set inside a hook or an alias
_IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (
        ("NAME", "jaxscope"),
        ("EMAIL", "jaxscope@localhost"),
        ("DATE", "2000-01-01T00:00:00Z"),
    )
}


class Repository:
    """The git repository of the current directory, and a temporary directory (``room``) into which its
    versions are checked out.

    Attributes:
      root: the top of the user's checkout.
      below: the current directory, relative to ``root``.
      tree: a directory inside the temporary directory. All versions are checked out here, one after the
        other, so that paths in outputs and programs are equal.
    """

    def __init__(self, root: Path, below: Path, room: Path) -> None:
        self.root, self.below, self.tree = root, below, room / "tree"
        self._room = room
        own = self.git("rev-parse", "--git-path", "objects").strip()
        self._env = {
            "GIT_OBJECT_DIRECTORY": str(room / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(root / own),
        }
        files.make_directory(room / "objects")

    def git(self, *words: str, at: Path | None = None, env: Mapping[str, str] | None = None) -> str:
        """Run ``git`` with ``words`` in the directory ``at`` (default: ``root``) and return its stdout.
        ``env`` has additional environment variables.

        Raises:
          UsageError: git failed; the message has git's own message.
        """
        done = subprocess.run(
            ["git", *_QUIET, *words],
            cwd=at or self.root,
            env={**_environment(), **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        if done.returncode:
            text = os.fsdecode(done.stderr or done.stdout).strip()
            raise UsageError(f"git {words[0]} failed: {text}", hint=f"in {at or self.root}", slug="git")
        return os.fsdecode(done.stdout)

    def commit_of(self, ref: str) -> str:
        """Return the id of the commit that ``ref`` names.

        Raises:
          UsageError: git does not find a commit with this name.
        """
        try:
            return self.git(
                "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}"
            ).strip()
        except UsageError as e:
            raise UsageError(
                f"there is no commit {ref!r} in {self.root}",
                hint="give a branch, a tag or a commit; the checkout needs at least one commit",
                slug="no-such-ref",
            ) from e

    def uncommitted(self) -> str:
        """Return the id of a commit with the user's checkout as it is now, including uncommitted changes and
        new files, but without files that git ignores. This is HEAD if nothing has changed since HEAD, else a
        new commit whose objects are only in the temporary directory."""
        head = self.commit_of("HEAD")
        index = self._room / "index"
        with contextlib.suppress(OSError):  # an empty index works as well, more slowly
            own = self.root / self.git("rev-parse", "--git-path", "index").strip()
            files.write(index, own.read_bytes())
        env = {**self._env, "GIT_INDEX_FILE": str(index)}
        self.git("add", "--all", ".", env=env)
        tree = self.git("write-tree", env=env).strip()
        if tree == self.git("rev-parse", f"{head}^{{tree}}").strip():
            return head
        return self.git(
            "commit-tree", tree, "-p", head, "-m", "uncommitted", env={**env, **_IDENTITY}
        ).strip()

    @contextlib.contextmanager
    def checked_out(self, commit: str, patch: Path | None = None) -> Iterator[Path]:
        """Check out ``commit`` into ``tree`` and apply ``patch``, if any. The checkout is removed when the
        ``with`` statement ends.

        Yields the directory in ``tree`` that corresponds to the user's current directory.

        Raises:
          UsageError: the patch does not apply.
        """
        self.git("worktree", "add", "--quiet", "--detach", str(self.tree), commit, env=self._env)
        try:
            if patch is not None:
                self._apply(patch)
            yield self.tree / self.below
        finally:
            with contextlib.suppress(UsageError):
                self.git("worktree", "remove", "--force", str(self.tree))
            shutil.rmtree(self.tree, ignore_errors=True)
            with contextlib.suppress(UsageError):
                self.git("worktree", "prune")

    def _apply(self, patch: Path) -> None:
        """Apply the diff ``patch`` to ``tree``. Its paths begin at the top of the repository, or else at the
        user's current directory.

        Raises:
          UsageError: the patch does not apply.
        """
        words = ("apply", "--whitespace=nowarn", "--recount")
        try:
            self.git(*words, str(patch), at=self.tree, env=self._env)
        except UsageError as e:
            if self.below == Path():
                raise _does_not_apply(patch, e) from e
            try:  # a patch whose paths begin at the current directory
                self.git(
                    *words, f"--directory={self.below.as_posix()}", str(patch), at=self.tree, env=self._env
                )
            except UsageError:
                raise _does_not_apply(patch, e) from e

    def python_path(self) -> list[str]:
        """Return entries for PYTHONPATH that make the program import its code from ``tree``: the directories
        in ``tree`` that correspond to entries of ``sys.path`` in the user's checkout, and to packages that
        are installed from there (``pip install -e``). Directories that do not exist in ``tree`` are left
        out."""
        entries = [Path(entry) for entry in sys.path[1:] if entry]
        for name, module in list(sys.modules.items()):
            mapping = getattr(module, "MAPPING", None)  # of setuptools
            if name.startswith("__editable__") and isinstance(mapping, dict):
                entries += [Path(path).parent for path in mapping.values() if isinstance(path, str)]
        there = [self.tree / e.relative_to(self.root) for e in entries if e.is_relative_to(self.root)]
        return [str(path) for path in dict.fromkeys(there) if path.is_dir()]


def _does_not_apply(patch: Path, e: UsageError) -> UsageError:
    return UsageError(
        f"{patch} does not apply: {e.message.partition(': ')[2]}",
        hint="make it against the files as they are now: git diff > FIX.diff, then git stash",
        slug="patch-does-not-apply",
    )


def _environment() -> dict[str, str]:
    """Return the environment for git: without the variables of a git command that started jaxscope, without
    questions to the user, with English messages."""
    env = {name: value for name, value in os.environ.items() if name not in _FROM_GIT}
    return {**env, "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}


@contextlib.contextmanager
def repository() -> Iterator[Repository]:
    """Yield the repository of the current directory. Its temporary directory is removed when the ``with``
    statement ends.

    Raises:
      UsageError: the current directory is not in a git repository, or git is not installed.
    """
    here = store.here().resolve()
    try:
        done = subprocess.run(
            ["git", "rev-parse", "--show-toplevel"],
            cwd=here,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError as e:
        raise UsageError("try needs git, which is not installed", slug="no-git") from e
    if done.returncode:
        raise UsageError(
            f"{here} is in no git repository",
            hint="jaxscope try compares versions of a checkout; without git: jaxscope run before and after,"
            " then jaxscope diff",
            slug="no-repository",
        )
    root = Path(os.fsdecode(done.stdout).rstrip("\n")).resolve()
    with tempfile.TemporaryDirectory(prefix="jaxscope-try-", ignore_cleanup_errors=True) as room:
        yield Repository(root, here.relative_to(root), Path(room).resolve())
