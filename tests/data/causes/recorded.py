"""The cases run under a recording, and again under JAX's own explainer; each run makes its functions anew."""

import io
import logging
from pathlib import Path
from typing import Any, Iterable, NamedTuple

import jax

import jaxscope
from jaxscope.report.json_report import as_json

from .spec import Case

def file_of(case: Case) -> str:
    """The file the case is written in, and so its call."""
    return case.make.__code__.co_filename


class Said(NamedTuple):
    compilations: list[dict[str, Any]]  # of the case's function, during the measured call
    error: str | None = None


def record(cases: Iterable[Case], where: Path) -> dict[str, Said]:
    """Run all cases in one recording; step marks around each measured call tell whose compilations are whose."""
    cases = list(cases)
    errors: dict[str, str] = {}
    with jaxscope.record(where, ir="none") as run:
        for case in cases:
            try:
                warm, measured = case.make()
                for _ in range(case.warm):
                    warm()
                jax.effects_barrier()
            except Exception as e:
                errors[case.name] = f"{type(e).__name__}: {e}"
                measured = lambda: None  # noqa: E731
            jaxscope.step()
            try:
                measured()
            except Exception as e:  # a control may end in an error of JAX
                errors.setdefault(case.name, f"{type(e).__name__}: {e}") if case.causes else None
            jaxscope.step()
            del warm, measured
    report = as_json(run.read())
    names = {f["id"]: f"{f['qualname']} {f['name']}" for f in report["functions"]}
    steps: dict[int, list[dict[str, Any]]] = {}
    for compilation in report["compilations"]:
        steps.setdefault(compilation["step"], []).append(compilation)
    return {
        case.name: Said(
            [c for c in steps.get(2 * i + 2, []) if case.function in names.get(c["function"], "")],
            errors.get(case.name),
        )
        for i, case in enumerate(cases)
    }


def explain(cases: Iterable[Case]) -> dict[str, str]:
    """What ``jax_explain_cache_misses`` logs during each measured call. The setting is put back."""
    log, logger = io.StringIO(), logging.getLogger("jax")
    handler = logging.StreamHandler(log)
    handlers, propagate, told = list(logger.handlers), logger.propagate, {}
    for other in handlers:
        logger.removeHandler(other)
    logger.addHandler(handler)
    logger.propagate = False
    before = jax.config.jax_explain_cache_misses
    jax.config.update("jax_explain_cache_misses", True)
    try:
        for case in cases:
            warm, measured = case.make()
            for _ in range(case.warm):
                warm()
            jax.effects_barrier()
            log.seek(0)
            log.truncate()
            try:
                measured()
            except Exception as e:
                if case.causes:
                    told[case.name] = f"(the explainer ended the call: {type(e).__name__})"
                    continue
            told[case.name] = log.getvalue()
    finally:
        jax.config.update("jax_explain_cache_misses", before)
        logger.removeHandler(handler)
        for other in handlers:
            logger.addHandler(other)
        logger.propagate = propagate
    return told
