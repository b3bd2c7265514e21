"""What is a failure of ours, and what becomes of a part that fails."""

from __future__ import annotations

import signal
import threading
import types

import pytest

from jaxscope.capture import shield


@pytest.fixture
def reported():
    found: list[tuple[str, str]] = []
    shield.reset(lambda name, reason: found.append((name, reason)))
    yield found
    shield.reset(None)


def _module(name, file, source):
    """Functions as if they stood in ``file``, of module ``name``."""
    space = types.ModuleType(name).__dict__
    exec(compile(source, file, "exec"), space)
    return space


OURS = _module(
    "jaxscope.capture.odd",
    "/site-packages/jaxscope/capture/odd.py",
    """
def fail(error): raise error
def call(f, *args): return f(*args)
calls = []
def sometimes(good):
    calls.append(good)
    if not good: raise KeyError("args")
    return 1
""",
)
PROGRAM = _module("train", "/home/me/train.py", "def flatten(error): raise error\ndef fine(): return 1\n")


def test_a_failure_of_ours_is_reported_once_with_its_reason(reported):
    for _ in range(3):
        assert shield.attempt("part", OURS["fail"], KeyError("args")) is None
    assert reported == [("part", "KeyError: 'args'")] and not shield.works("part")


def test_what_fails_again_and_again_rests_ever_longer_and_is_back_with_its_first_success(reported):
    calls = OURS["calls"]
    for _ in range(200):
        shield.attempt("part", OURS["sometimes"], False)
    assert shield.is_off("part") and shield.STRIKES < len(calls) < 2 * shield.STRIKES
    made = 0
    while shield.is_off("part"):
        made += 1
        shield.attempt("part", OURS["sometimes"], True)
    assert made <= shield.LONGEST_REST + 1 and shield.attempt("part", OURS["sometimes"], True) == 1
    assert len(reported) == 1


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("Array has been deleted with shape=float32[10]."),
        type("JaxRuntimeError", (RuntimeError,), {})("INVALID_ARGUMENT: called on deleted or donated buffer"),
    ],
)
def test_an_array_that_was_deleted_is_no_failure_of_ours(error, reported):
    for _ in range(3 * shield.STRIKES):
        assert shield.attempt("device_puts", OURS["fail"], error) is None
    assert reported == [] and not shield.is_off("device_puts") and shield.works("device_puts")


def test_what_the_programs_own_code_raised_is_no_failure_of_ours(reported):
    class Odd(ValueError):
        def __str__(self):
            raise AssertionError("nobody asks")

    for error in (ValueError("mine"), Odd()):
        for _ in range(2 * shield.STRIKES):
            assert shield.attempt("signature", OURS["call"], PROGRAM["flatten"], error) is None
    assert reported == [] and not shield.is_off("signature")


def test_an_exception_that_cannot_be_spelled_is_reported_by_its_class(reported):
    class Odd(ValueError):
        def __str__(self):
            raise AssertionError("no")

    shield.attempt("part", OURS["fail"], Odd())
    assert reported == [("part", "Odd")]


def test_what_is_switched_off_stays_so(reported):
    shield.switch_off("seam", "not in this JAX")
    for _ in range(3 * shield.STRIKES):
        assert shield.attempt("seam", PROGRAM["fine"]) is None
    assert shield.is_off("seam") and reported == [("seam", "not in this JAX")]


def test_what_a_signal_handler_of_the_program_raises_reaches_the_program(reported):
    def expired(number, frame):
        raise TimeoutError

    before = signal.signal(signal.SIGUSR1, expired)
    try:
        with pytest.raises(TimeoutError):
            shield.attempt("arrays", signal.raise_signal, signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert reported == []


def test_a_thread_of_ours_takes_no_signal_of_the_program():
    before, masks, ended = signal.pthread_sigmask(signal.SIG_BLOCK, []), [], threading.Event()

    def run():
        masks.append(signal.pthread_sigmask(signal.SIG_BLOCK, []))
        ended.set()

    shield.start_thread(run)
    assert ended.wait(10)
    assert {signal.SIGINT, signal.SIGTERM, signal.SIGUSR1} <= masks[0]
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before
