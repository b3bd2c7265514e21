"""Files are opened for writing in one place, ``jaxscope/log/files.py``: it follows no link that somebody left there."""

import ast
from collections.abc import Iterator
from pathlib import Path

import jaxscope

PACKAGE = Path(jaxscope.__file__).parent
WRITES = {"write_text", "write_bytes", "touch", "symlink_to", "hardlink_to", "mkdir", "makedirs", "mkfifo"}
TEMPORARY = {"NamedTemporaryFile", "mkstemp", "mktemp"}
OPENS_FOR_WRITING = {"O_WRONLY", "O_RDWR", "O_CREAT", "O_APPEND", "O_TRUNC"}
OF_OS = {"replace", "rename", "link", "symlink", "truncate"}
# A file with none of these has nothing to look for, and need not be parsed.
WORDS = [
    *WRITES,
    *TEMPORARY,
    *OPENS_FOR_WRITING,
    *(f"os.{name}" for name in OF_OS),
    "open(",
    "shutil.",
    "GzipFile",
]
# Where else, and why.
EXCEPTIONS = {
    "log/files.py": "the one place",
    "log/counts.py": "flags for files.descriptor",
    "launch/boot/sitecustomize.py": "any Python runs it: the standard library alone, and O_NOFOLLOW",
    "launch/detached.py": "/dev/null",
    "cli/__init__.py": "/dev/null",
    "targets/worker.py": "a lock in the temporary directory, O_NOFOLLOW",
    "log/store.py": "directories above a run's, as the user would make them",
}


def _writing(tree: ast.AST) -> Iterator[int]:
    """The lines that open a file for writing, or make one."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        f = node.func
        name = f.attr if isinstance(f, ast.Attribute) else f.id if isinstance(f, ast.Name) else ""
        of = f.value.id if isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name) else ""
        words = {n.attr for a in node.args for n in ast.walk(a) if isinstance(n, ast.Attribute)}
        modes = [
            a.value for a in [*node.args, *(k.value for k in node.keywords)] if isinstance(a, ast.Constant)
        ]
        mode = next((m for m in modes if isinstance(m, str) and len(m) < 4 and set(m) <= set("rwxabt+")), "r")
        if of in ("files", "tmp_path_factory"):  # pytest makes a directory for a test
            continue
        if (
            name in WRITES | TEMPORARY
            or (name in ("open", "fdopen", "GzipFile") and set(mode) & set("wxa+"))
            or (words & OPENS_FOR_WRITING)
            or (of == "os" and name in OF_OS)
            or (of == "shutil" and name.startswith(("copy", "move")))
        ):
            yield node.lineno


def test_only_one_place_opens_files_for_writing():
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text()
        lines = list(_writing(ast.parse(text))) if any(word in text for word in WORDS) else []
        if lines and str(path.relative_to(PACKAGE)) not in EXCEPTIONS:
            found[str(path.relative_to(PACKAGE))] = lines
    assert found == {}


def test_the_search_finds_each_way_to_write():
    ways = (
        "open(p, 'w')", "p.open('ab')", "io.open(p, mode='x')", "p.write_text(t)", "os.open(p, os.O_WRONLY | os.O_CREAT)",
        "os.replace(a, b)", "shutil.copyfile(a, b)", "tempfile.NamedTemporaryFile()", "os.mkdir(p)", "p.touch()",
        "os.open(p, flags | os.O_RDWR)", "gzip.open(p, 'wb')", "open(p, 'r+')",
    )  # fmt: skip
    assert [w for w in ways if not list(_writing(ast.parse(w)))] == []
    assert not list(_writing(ast.parse("open(p); p.open('rb'); files.write(p, t); a.replace(b, c)")))
