"""Runs written by hand, and what a baseline keeps of them."""

import pytest
from handwritten_runs import Log, function

from jaxscope.check.baseline import extract
from jaxscope.log import store
from jaxscope.model.load import load


class Making:
    """``run(...)``: a recorded run; ``read(...)``: its baseline."""

    def __init__(self, path):
        self.path = path
        self.n = 0

    def run(self, *compilations, seen=None, devices=8, say=(), **started):
        """``compilations``: (key, program, hlo text, stablehlo text), or a function to go on with."""
        self.n += 1
        run = store.create(self.path / f"run{self.n}")
        log = Log(run, **started)
        log.backend(devices)
        current = seen or function("step")
        log.say(current)
        for item in compilations:
            if not isinstance(item, tuple):
                current = item
                log.say(current)
                continue
            k, program, made, lowered = item
            texts = {s: t for s, t in (("hlo", made), ("stablehlo", lowered)) if t is not None}
            log.compiled(current, k, program=program, texts=texts)
        for event in say:
            log.say(event)
        log.end()
        return load(run)

    def read(self, *compilations, findings=(), roots=(), **more):
        return extract.extract(self.run(*compilations, **more), findings, roots)


@pytest.fixture
def making(tmp_path):
    return Making(tmp_path)
