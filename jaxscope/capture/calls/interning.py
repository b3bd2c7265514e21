"""Write each function, each configuration of JAX and the backend to the log when they first occur. Later
entries of the log refer to them by an id."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from jaxscope import jax_internals
from jaxscope.capture import notebook_cells, shield, texts
from jaxscope.capture.calls import functions
from jaxscope.capture.calls.in_progress import Weak
from jaxscope.capture.calls.wrappers import UserCall
from jaxscope.log import files, secret_values
from jaxscope.log.writer import Writer
from jaxscope.schema import events as ev
from jaxscope.schema.file_owner import STANDING, Standing

MAX_COPY = 1_000_000  # bytes of a file; of a longer one no copy is stored
MAX_SOURCE = 4_000_000  # bytes of a file; model.sources reads files up to the same size
# Packages for accelerators that JAX tries to use if jax_platforms is not set.
ACCELERATORS = ("libtpu", "jax_cuda13_plugin", "jax_cuda12_plugin")
UNREADABLE = ev.FunctionSeen(function="?", name="?", qualname="?", library=True)


class Introductions:
    """Writes each function, each JAX configuration and the backend to the log when it first occurs, as
    ``FunctionSeen``, ``ContextSeen`` or ``BackendSeen``."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._functions: set[str] = set()
        self._users: set[str] = set()  # functions of libraries that the user passed to jit
        self._by_object = Weak()
        self._by_place: dict[tuple[str | None, int | None, str], ev.FunctionSeen] = {}
        self._contexts: dict[tuple[tuple[str, str], ...], str] = {}
        self._backend = False
        # Called once, when a backend is first seen.
        self.on_backend: Callable[[], object] = lambda: None
        # Called with the index of this process and the number of processes, if there are several.
        self.on_job: Callable[[int, int], object] = lambda index, count: None
        self._files: set[str] = set()

    def describe(self, function: Any, user: UserCall | None = None) -> ev.FunctionSeen:
        """Return the event ``FunctionSeen`` that describes ``function``, an object that was passed to jit.
        The event is not logged.

        If a library's wrapper such as ``nnx.jit`` made ``function``, ``user`` is the user's call of this
        wrapper, and the event describes the user's function. None: no wrapper made it.
        """
        subject = user.function if user is not None else function
        around = user.wrapper if user is not None else ""
        known: dict[str, ev.FunctionSeen] | None = self._by_object.get(subject)
        if known is None:
            known = {}
            self._by_object.put(subject, known)
        if around not in known:
            known[around] = functions.describe(subject, [around] if around else None)
        return known[around]

    def traced(self, jaxpr: Any) -> ev.FunctionSeen:
        """Return the event ``FunctionSeen`` that describes the function that was traced to ``jaxpr``: an
        earlier one for the same file, line and name if there is one, else a new one, which is logged."""
        seen = functions.describe_traced(jaxpr)
        return self._by_place.get((seen.file, seen.line, seen.name)) or self.introduce(seen)

    def remember_wrapper(self, function: Any, event: ev.FunctionSeen) -> None:
        """Remember that ``function``, a wrapper of a library, runs the user's function that ``event``
        describes. From now on, ``traced`` returns ``event`` for a jaxpr of ``function``."""
        code = getattr(function, "__code__", None)  # under grad, JAX shows only the name and line of it
        if code is not None:
            name = str(function.__qualname__).rpartition(".")[2]
            self._by_place[code.co_filename, code.co_firstlineno, name] = event

    def jitted_by_user(self, event: ev.FunctionSeen) -> ev.FunctionSeen:
        """Return a copy of ``event`` in which ``library`` is False: its function counts as the user's. Write
        the copy to the log the first time. ``event`` describes a function of a library that the user passed
        to jit."""
        users = msgspec.structs.replace(event, library=False)
        if event.function not in self._users:
            self._users.add(event.function)
            self._functions.add(event.function)
            self._by_place[event.file, event.line, event.name] = users
            self._writer.emit(users)
        return users

    def introduce(self, event: ev.FunctionSeen) -> ev.FunctionSeen:
        """Return ``event``, the event that describes a function. Write it to the log, unless the log has an
        event for this function already."""
        if event.function not in self._functions:
            self._functions.add(event.function)
            self._by_place.setdefault((event.file, event.line, event.name), event)
            self._writer.emit(event)
        return event

    def sources(self, names: Iterable[str | None]) -> None:
        """Log an event ``SourceSeen``, with a checksum of the content, for each file in ``names`` that this
        method gets for the first time, and store a copy of the file if it is the user's. If the file cannot
        be read but ``linecache`` has its text, as for a notebook cell, the event also has this text. None and
        all other files that cannot be read are ignored."""
        for name in names:
            if name is not None and name not in self._files:
                self._files.add(name)
                try:
                    content = files.read(Path(name), MAX_SOURCE)
                    text = None
                except OSError:  # no file: <stdin>, a notebook's cell
                    text = notebook_cells.text(name)
                    if text is None:
                        continue
                    content = text.encode("utf-8", "surrogatepass")
                digest = hashlib.sha256(content).hexdigest()
                copy = self._copied(name, content) if text is None else None
                self._writer.emit(ev.SourceSeen(file=name, sha256=digest, text=text, copy=copy))

    def _copied(self, name: str, content: bytes) -> str | None:
        """Store ``content``, that of the source file ``name``, without secrets in the run directory, so that
        reports of this run show the same source after the file was changed. Return the hash of the copy; None
        if nothing was stored, because the file is a library's or too long, or because of ``--redact``."""
        if self._writer.filters or len(content) > MAX_COPY or STANDING(name) != Standing.USER:
            return None
        stored = self._writer.put_text(secret_values.without(content.decode("utf-8", "replace")))
        return stored[0] if stored is not None else None

    def context(self) -> str:
        """Return the id in the log, such as ``c1``, of JAX's present configuration: the settings that JAX's
        trace cache compares. If they are new, write them to the log (``ContextSeen``). Raises LookupError if
        the installed JAX does not have these settings."""
        settings = jax_internals.context_settings()
        content = tuple(sorted(settings.items()))
        known = self._contexts.get(content)
        if known is None:
            known = self._contexts[content] = f"c{len(self._contexts) + 1}"
            self._writer.emit(ev.ContextSeen(context=known, settings=settings))
        return known

    def backend(self, stack: dict[str, FrameType]) -> None:
        """Log the platform and its devices (``BackendSeen``) and call ``on_backend``, once, as soon as a
        frame of JAX refers to a backend. ``stack`` has JAX's frames by function name."""
        if self._backend:
            return
        backend = jax_internals.backend(stack)  # reads frames only, so that jaxscope never starts a backend
        if backend is not None:
            self._backend = True
            self.on_backend()
            shield.attempt("backend", self._write_backend, backend)

    def _write_backend(self, backend: Any) -> None:
        """Log the platform and the devices of ``backend``, and set the writer's ``process_index``. If the
        devices belong to several processes, call ``on_job``."""
        devices = texts.devices(backend)
        processes = len({d.process_index for d in devices})
        self._writer.process_index = index = int(backend.process_index())
        self._writer.emit(
            ev.BackendSeen(
                platform=str(backend.platform),
                platform_version=str(backend.platform_version)[:200],
                devices=devices,
                process_count=processes,
                in_vain=shield.attempt("backend", _unused_plugins, str(backend.platform)) or [],
            )
        )
        if processes > 1:
            self.on_job(index, processes)


def _unused_plugins(platform: str) -> list[str]:
    """Return the installed accelerator packages, such as ``libtpu``, that JAX could not use: JAX's
    ``platform`` is the CPU although the program did not choose it (``jax_platforms``). Otherwise return an
    empty list."""
    import jax

    if platform != "cpu" or getattr(jax.config, "jax_platforms", None):
        return []
    return [name for name in ACCELERATORS if importlib.util.find_spec(name) is not None]
