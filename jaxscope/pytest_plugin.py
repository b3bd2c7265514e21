"""The pytest plugin: marks that limit what a test compiles, and fixtures to inspect a test's compilations.

The plugin imports only pytest until a test uses a mark or the fixture ``jaxscope``. Then there is one
recording for the whole session (of an xdist worker), because JAX does not compile again what an earlier test
compiled. Each test reads its own part of this recording.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import re
import sys
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from jaxscope.check.marks import Judge
    from jaxscope.testing.baselines import Baselines
    from jaxscope.testing.ranks import Ended
    from jaxscope.testing.recording import SuiteRecording, TestRecording

MARKS = {
    "no_recompiles": (
        "no_recompiles(after=1, functions=None): nothing is traced, lowered or compiled after step"
        " `after` of the test; steps are jaxscope.step() marks or calls of a watched function, after=0"
        " needs none"
    ),
    "max_compilations": (
        "max_compilations(n, function=None): your functions, or the one named, are compiled at most n times"
    ),
    "max_compile_seconds": "max_compile_seconds(s): tracing, lowering and compiling take at most s seconds",
    "max_collectives": (
        "max_collectives(kind=None, count=None, bytes=None): each program compiled in the test has at"
        " most `count` collectives of this kind (kind@axis), and their results have at most `bytes` ('64"
        " MiB') in one call"
    ),
}
FIXTURE = "jaxscope"

_recording: pytest.StashKey[SuiteRecording] = pytest.StashKey()
_parts: pytest.StashKey[dict[str, TestRecording]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add jaxscope's options to pytest, which calls each function ``pytest_...``."""
    group = parser.getgroup("jaxscope", "JAX compilations")
    group.addoption(
        "--jaxscope-dir", metavar="DIR", help="keep the recordings of tests that use jaxscope in DIR"
    )
    group.addoption(
        "--jaxscope-baseline",
        metavar="DIR",
        help=(
            "directory of the baselines of jaxscope.pinned(), one file per test (default: jaxscope-baselines)"
        ),
    )
    group.addoption(
        "--jaxscope-update",
        choices=("none", "new", "all", "trim"),
        default="none",
        help=(
            "write missing baselines (new) or all, or remove those of tests that no longer exist"
            " (trim); not in CI"
        ),
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register jaxscope's marks. Raise pytest.UsageError if ``--jaxscope-update`` would change baselines in
    CI, or trim them although only a part of the suite is collected."""
    for line in MARKS.values():
        config.addinivalue_line("markers", line)
    update = config.getoption("--jaxscope-update")
    if update != "none" and os.environ.get("CI", "").casefold() not in ("", "0", "false"):
        raise pytest.UsageError(
            f"--jaxscope-update={update}: baselines are not updated in CI (CI={os.environ['CI']})\n"
            "  update them where you can review the change, and commit them"
        )
    if update == "trim" and (config.option.file_or_dir or config.option.keyword or config.option.markexpr):
        raise pytest.UsageError(
            "--jaxscope-update=trim removes the baselines of tests that this run does not collect\n"
            "  run it on the whole suite: without paths, -k and -m"
        )


# -- wrong usage: an error while collecting, as with --strict-markers
# ----------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Let the collection of a file or class fail if a test in it uses a mark of jaxscope wrongly."""
    report = yield
    if report.passed:
        for node in report.result:
            wrong = _wrong_usage(node) if isinstance(node, pytest.Item) else None
            if wrong is not None:
                report.outcome = "failed"
                report.longrepr = f"{node.nodeid}: {wrong}"
                report.result = []
                break
    return report


def _wrong_usage(item: pytest.Item) -> str | None:
    """Return what is wrong with the marks of the test ``item``: a mark of jaxscope has invalid arguments, or
    an unregistered mark has nearly the name of a mark of jaxscope. None if nothing is wrong."""
    for mark in item.iter_markers():
        if mark.name in MARKS:
            from jaxscope.check import marks
            from jaxscope.errors import UsageError

            try:
                marks.read(mark.name, mark.args, mark.kwargs)
            except UsageError as e:
                return str(e)
        elif mark.name not in _registered(item.config):
            from difflib import get_close_matches

            near = get_close_matches(mark.name, MARKS, 1, 0.8)
            if near:
                return (
                    f"there is no mark {mark.name!r}\n  did you mean {near[0]}? If not, register the mark in"
                    f" pytest's settings"
                )
    return None


def _registered(config: pytest.Config) -> set[str]:
    """Return the names of all marks that are registered with pytest."""
    return {line.partition(":")[0].partition("(")[0].strip() for line in config.getini("markers")} | _BUILT_IN


_BUILT_IN = {"parametrize", "skip", "skipif", "xfail", "usefixtures", "filterwarnings"}


# -- the recording of a session
# -------------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Record while the tests run, if at least one test uses jaxscope. With ``--jaxscope-update=trim``, first
    remove the baselines of tests that no longer exist."""
    users = [item for item in getattr(session, "items", ()) if _uses(item)]
    trims = session.config.getoption("--jaxscope-update") == "trim"
    if session.config.option.collectonly:
        return (yield)
    texts = any(FIXTURE in _fixtures(i) or i.get_closest_marker("max_collectives") for i in users)
    if trims and getattr(session.config, "workerinput", {}).get("workerid", "gw0") == "gw0":
        for path in _baselines(session.config).trim(item.nodeid for item in session.items):
            session.config.issue_config_time_warning(pytest.PytestWarning(f"removed {path}"), 2)
    if not users:
        try:
            return (yield)
        finally:
            _end(session.config)  # a fixture may have added a mark, which begins a recording
    _begin(session.config, texts=texts)
    try:
        return (yield)
    finally:
        _end(session.config)


def _begin(config: pytest.Config, *, texts: bool) -> SuiteRecording:
    """Begin the recording of the test session and return it. ``texts``: keep the StableHLO and HLO of
    programs."""
    from jaxscope.testing.recording import SuiteRecording

    worker = getattr(config, "workerinput", {}).get("workerid", "tests")
    folder, baselines = config.getoption("--jaxscope-dir"), _baselines(config)
    recording = SuiteRecording(folder, worker, texts=texts, baselines=baselines)
    recording.start()
    config.stash[_recording] = recording
    return recording


def _end(config: pytest.Config) -> None:
    """End the recording of the test session, if there is one."""
    recording = config.stash.get(_recording, None)
    if recording is not None:
        recording.stop()


def _baselines(config: pytest.Config) -> Baselines:
    """Return the baseline files, in the folder and with the update mode that the options name."""
    from jaxscope.testing.baselines import FOLDER, Baselines

    folder = config.rootpath / (config.getoption("--jaxscope-baseline") or FOLDER)
    return Baselines(folder, config.getoption("--jaxscope-update"), config.rootpath)


def _uses(item: pytest.Item) -> bool:
    """Return whether the test ``item`` uses the fixture ``jaxscope`` or a mark of jaxscope."""
    return FIXTURE in _fixtures(item) or any(mark.name in MARKS for mark in item.iter_markers())


def _fixtures(item: pytest.Item) -> list[str]:
    return list(getattr(item, "fixturenames", ()))


@pytest.fixture
def jaxscope(request: pytest.FixtureRequest) -> TestRecording:
    """Return the recording of this test. Its attribute ``compilations`` has the calls of the test that missed
    one of JAX's caches, and its method ``causes(compilation)`` returns why a call missed. ``read()`` returns
    the recording of all tests so far.

    ``with jaxscope.pinned():`` compares the programs that a block compiles with the test's baseline, a file
    with figures of earlier programs. The fixture also has the functions of the package (``jaxscope.step()``,
    ``jaxscope.watch``).
    """
    return _part_of(request.node)


@pytest.fixture
def jaxscope_ranks(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Ended]:
    """Return the function ``jaxscope_ranks(n, program, *arguments)``. This function runs a script as a job of
    ``n`` processes (on the CPU, unless JAX_PLATFORMS is set), and returns the result of the job.

    The test fails if the job fails or records nothing, or if the processes do not compile the same programs
    in the same order. With ``check=False`` the test does not fail, and can use ``findings`` and
    ``returncode`` of the result. The job is stopped after ``timeout`` seconds; None: after 120.
    """

    def run(
        n: int, program: object, *arguments: object, check: bool = True, timeout: float | None = None
    ) -> Ended:
        from jaxscope.testing import ranks

        words = [str(word) for word in (program, *arguments)]
        limit = ranks.TIMEOUT_S if timeout is None else timeout
        ended = ranks.run(tmp_path_factory.mktemp("ranks"), n, words, limit)
        if check and ended.failure is not None:
            pytest.fail(ended.failure, pytrace=False)
        return ended

    return run


def _part_of(item: pytest.Item) -> TestRecording:
    """Return the recording of the test ``item``: the same object in each attempt of the test. If nothing is
    recorded yet, begin (a fixture added a mark to the test), or let the test fail (it got the fixture
    ``jaxscope`` only by ``request.getfixturevalue``)."""
    recording = item.config.stash.get(_recording, None)
    if recording is None:
        if FIXTURE in _fixtures(item) or not _uses(item):
            pytest.fail(
                "this test is not recorded: add the fixture jaxscope to its arguments",
                False,
            )
        recording = _begin(item.config, texts=True)  # a fixture added the first mark
    parts = item.config.stash.setdefault(_parts, {})
    test = _test_of(item)
    if test not in parts:
        from jaxscope.testing.recording import TestRecording

        parts[test] = TestRecording(item.nodeid, recording)
    return parts[test]


def _test_of(item: pytest.Item) -> str:
    """Return an id of the test ``item`` that is the same in each rerun (``--reruns``) and repetition
    (``--count``). The number that pytest-repeat adds is removed: ``test_a.py::test_step[2-5]`` ->
    ``test_a.py::test_step[]``."""
    turn = getattr(getattr(item, "callspec", None), "params", {}).get(_REPEATED)
    if not isinstance(turn, int):
        return item.nodeid
    return re.sub(rf"(?<=[-\[]){turn + 1}-\d+(?=[-\]])", "", item.nodeid)


_REPEATED = "__pytest_repeat_step_number"  # pytest-repeat's parameter


# -- one test
# ---------------------------------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Run the test ``item``, and let it fail if it compiles more than its marks allow. If the test raises an
    exception, the failed marks are a section of the report. If marks failed in an earlier attempt of the
    test in this process, the test fails without running."""
    if not _uses(item):
        return (yield)
    recording = _part_of(item)
    if recording.failure is not None:
        # JAX keeps what that try compiled, so that this try compiles nothing: it would pass wrongly.
        pytest.fail(
            f"{recording.failure}\n\n(found in an earlier try of this test, in the same process)",
            pytrace=False,
        )
    try:
        with _body(item, recording):
            result = yield
    except (Exception, pytest.fail.Exception):
        _report_below(item, recording)
        raise
    if recording.raised:  # unittest catches the exceptions of a test method
        _report_below(item, recording)
    elif recording.entered:
        text, _ = _failures(item, recording)
        if text:
            recording.failure = text
            pytest.fail(text, pytrace=False)
    return result


def _report_below(item: pytest.Item, recording: TestRecording) -> None:
    """Add a section to pytest's report of the test ``item``, which failed with an exception, if the test also
    compiled more than its marks allow. ``recording`` is the recording of the test."""
    try:
        text, surely = _failures(item, recording)
        recording.failure = surely or None
    except Exception as e:
        text = f"unknown what was compiled: {type(e).__name__}: {e}"
    if text:
        item.add_report_section("call", "jaxscope", text)


@contextlib.contextmanager
def _body(item: pytest.Item, recording: TestRecording) -> Iterator[None]:
    """Record the body of the test ``item``, which runs inside the ``with`` statement, in ``recording``. Only
    what the body compiles is checked; what ``setUp`` and ``tearDown`` of a ``unittest.TestCase`` compile is
    not."""
    instance, method = getattr(item, "instance", None), getattr(item, "obj", None)
    unittest = sys.modules.get("unittest")
    if unittest is None or not isinstance(instance, unittest.TestCase) or method is None:
        with recording:
            yield
        return

    @functools.wraps(method)
    def test(*args: Any, **kwargs: Any) -> Any:
        with recording:
            return method(*args, **kwargs)

    @functools.wraps(method)
    async def async_test(*args: Any, **kwargs: Any) -> Any:
        with recording:
            return await method(*args, **kwargs)

    recording.reset()
    # The method is wrapped, because pytest runs setUp and tearDown together with it.
    # unittest looks the method up by its name; pytest puts ``obj`` there first, where it is not async.
    item.obj = async_test if inspect.iscoroutinefunction(method) else test  # type: ignore[attr-defined]
    setattr(instance, item.name, item.obj)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        item.obj = method  # type: ignore[attr-defined]


def _failures(item: pytest.Item, recording: TestRecording) -> tuple[str, str]:
    """Check the marks of the test ``item``. Return (text of all failures, text of the certain failures), each
    empty if there are none. A failure is certain if the rest of the test's body could not undo the failure,
    for example because a limit is exceeded already. What the marks cannot check becomes a pytest warning.
    ``recording`` is the recording of the test."""
    from jaxscope.check import marks

    found: list[str] = []
    surely: list[str] = []
    for name, judge in _marks_of(item):
        run, compiled = recording.recorded(tries=name == "max_collectives")
        outcome = marks.judged(name, judge, run, compiled)
        if outcome.failure is not None:
            found.append(outcome.failure)
            surely += [outcome.failure] if outcome.surely else []
        for text in outcome.unknown:
            item.warn(pytest.PytestWarning(f"{name}: {text}"))
    reason = recording.unreliable() if next(_marks_of(item), None) is not None else None
    if reason is not None:
        found.append(f"unknown what was compiled: {reason}")
    return "\n\n".join(found), "\n\n".join(surely)


def _marks_of(item: pytest.Item) -> Iterator[tuple[str, Judge]]:
    """Yield (name, check) for each mark of jaxscope on the test ``item``. Of several marks with the same name
    for the same functions or kind of collective, only the nearest to the test is yielded."""
    from jaxscope.check import marks

    seen = set()
    for mark in item.iter_markers():
        if mark.name in MARKS:
            judge = marks.read(mark.name, mark.args, mark.kwargs)
            given = inspect.signature(marks.MARKS[mark.name]).bind(*mark.args, **mark.kwargs).arguments
            about = (mark.name, *(str(given.get(k)) for k in ("functions", "function", "kind")))
            if about not in seen:
                seen.add(about)
                yield mark.name, judge
