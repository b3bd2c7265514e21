"""Analyze the texts (StableHLO and compiled HLO) of the programs of a run.

The analysis of a text takes up to seconds. Its result is cached in the run's directory under ``derived/``,
which may be deleted at any time.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping

import msgspec

from jaxscope.analysis import programs
from jaxscope.analysis.hlo import instruction_lines
from jaxscope.analysis.hlo.fusions import Fusion
from jaxscope.analysis.hlo.instruction_lines import Located
from jaxscope.analysis.programs import NOTHING, Around, Texts
from jaxscope.log import files
from jaxscope.log.store import RunDir
from jaxscope.model.records import Compilation, Program
from jaxscope.model.xla_warnings import WarningsByProgram

PIECE = 4_000  # number of fusions in a piece of a cached result; decoding them takes about 4 ms
MAX_CACHED = 64 << 20  # bytes of a cached result. The result for a text of 64 MiB has half as many.
# Created at import: two threads that are the first to decode a type crash msgspec (0.22).
_FUSIONS = msgspec.msgpack.Decoder(list[Fusion])
_TEXTS = msgspec.msgpack.Decoder(Texts)


class Reader:
    """Reads and analyzes the texts (StableHLO, HLO) of the programs of a run. ``texts`` keeps its results.

    Args:
      warnings: XLA's warnings of the run by program; None: they are not needed.

    Attributes:
      unreadable: names of the files with texts that were requested but are missing or damaged.
    """

    def __init__(self, directory: RunDir, warnings: WarningsByProgram | None = None) -> None:
        self._directory = directory
        self._warnings = warnings
        self._read: dict[tuple[object, ...], Texts] = {}
        self._stored: dict[str, str | None] = {}
        self.unreadable: set[str] = set()

    def texts(self, p: Program) -> Texts:
        """Return the analyzed texts of ``p``. The fields ``stablehlo`` and ``hlo`` of the result are None if
        the text was not recorded or is unreadable."""
        blobs = p.texts.get("hlo"), p.texts.get("stablehlo")
        warnings = self._warnings.of(p) if self._warnings is not None and p.target_lowered is None else None
        if blobs == (None, None) and not warnings:
            return NOTHING if warnings is None else Texts(None, None, [])
        key = (p.id, *blobs, None if warnings is None else tuple(warnings))
        if key not in self._read:
            around = circumstances(p, warnings)
            self._read[key] = read_texts(self._directory, *blobs, around, self.unreadable)
        return self._read[key]

    def stored(self, blob: str) -> str | None:
        """Return the stored text with the hash ``blob``, such as a copy of a source file; None if it is
        missing or damaged."""
        if blob not in self._stored:
            self._stored[blob] = _text(self._directory, blob)
        return self._stored[blob]

    def instructions(self, p: Program) -> Mapping[str, Located]:
        """Return {name of an HLO instruction of ``p``: opcode and user's line}. GPU kernels have entries, too
        (see ``instruction_lines.kernel_key``). Empty if the HLO text was not recorded or is unreadable."""
        text = _text(self._directory, p.texts.get("hlo"))
        try:
            return {} if text is None else instruction_lines.of(text)
        except Exception:  # not the text of a compiler
            return {}


def read_texts(
    directory: RunDir,
    hlo: str | None,
    stablehlo: str | None,
    around: Around,
    unreadable: set[str] | None = None,
) -> Texts:
    """Return the analyzed texts of a program, from the cache in the run directory if it has them.

    The names of files that are missing or damaged are added to ``unreadable``; the result is then not cached.

    Args:
      hlo, stablehlo: names of the files with the texts in the run directory; None: not recorded.
      around: facts from the recording that the analysis needs.
    """
    name = hashlib.sha256(msgspec.msgpack.encode((programs.VERSION, hlo, stablehlo, around))).hexdigest()[:32]
    cached = directory.path / "derived" / f"{name}.msgpack"
    try:
        return _unpacked(files.read(cached, MAX_CACHED, within=directory.path))
    except (OSError, ValueError, RecursionError):  # msgspec's errors are ValueErrors
        pass
    texts = {blob: _text(directory, blob) for blob in (hlo, stablehlo)}
    try:
        found = programs.analyze(texts[hlo], texts[stablehlo], around)
    except Exception:  # not the text of a compiler
        texts, found = dict.fromkeys(texts), NOTHING
    lost = {blob for blob, text in texts.items() if blob is not None and text is None}
    if lost:
        if unreadable is not None:
            unreadable |= lost
        return found
    try:
        files.make_directory(cached.parent, within=directory.path)
        files.write(cached, b"".join(_packed(found)), within=directory.path)
    except (OSError, ValueError, OverflowError):
        pass  # another user's run, a full disk, 2^64 flops, a lone surrogate: read again next time
    return found


def _packed(texts: Texts) -> Iterator[bytes]:
    """Yield the parts of the cache file for ``texts``: the number of pieces, then each piece after its
    length, both numbers in 8 bytes. The first piece has all but the list of fusions, each other piece up to
    PIECE fusions."""
    # Python runs no other thread while msgspec decodes a piece. As one piece, the 460,000 fusions of a text
    # of 100 MB would block the terminal view for half a second.
    fusions: list[Fusion] = []
    if texts.hlo is not None:
        fusions = texts.hlo.fusions.each
        without = msgspec.structs.replace(texts.hlo.fusions, each=[])
        texts = msgspec.structs.replace(texts, hlo=msgspec.structs.replace(texts.hlo, fusions=without))
    pieces = [texts, *(fusions[at : at + PIECE] for at in range(0, len(fusions), PIECE))]
    yield len(pieces).to_bytes(8)
    for piece in map(msgspec.msgpack.encode, pieces):
        yield len(piece).to_bytes(8)
        yield piece


def _unpacked(data: bytes) -> Texts:
    """Return the analyzed texts in ``data``, the contents of a cache file (see ``_packed``).

    Raises:
      ValueError: ``data`` has another format or is truncated.
    """
    count, view = int.from_bytes(data[:8]), memoryview(data)[8:]
    found: Texts | None = None
    while view:
        count -= 1
        size = int.from_bytes(view[:8])
        if len(view) < 8 + size:
            raise ValueError("cut short")
        piece, view = view[8 : 8 + size], view[8 + size :]
        if found is None:
            found = _TEXTS.decode(piece)
        elif found.hlo is not None:
            found.hlo.fusions.each.extend(_FUSIONS.decode(piece))
    if found is None or count:
        raise ValueError("cut short")
    return found


def _text(directory: RunDir, blob: str | None) -> str | None:
    """Return the text in the file ``blob`` of the run directory. None if ``blob`` is None or the file is
    unreadable."""
    try:
        if blob is None:
            return None
        return directory.data(blob, programs.MAX_ANALYSED).decode("utf-8", "backslashreplace")
    except Exception:  # the file is damaged or missing
        return None


def circumstances(p: Program, warnings: list[str] | None = None) -> Around:
    """Return facts from the recording that the analysis of the texts of ``p`` needs. The mesh and the
    argument paths are those of the first call of ``p`` whose key was recorded; without such a call, the
    result has only ``warnings``, XLA's warnings about ``p`` (None: they were not recorded)."""
    c = next((c for c in p.compilations if c.key is not None), None)
    if c is None or c.key is None:
        return Around(warnings=warnings)
    traced = trace_of(c)
    dropped = p.compiled.dropped_arguments if p.compiled is not None else []
    donated = p.lowered.donated if p.lowered is not None else None
    if p.target_lowered is not None:
        dropped, donated = list(p.target_lowered.dropped), list(p.target_lowered.donated)
    return Around(
        mesh=mesh_of(c),
        paths=[leaf.path for leaf in c.key.arguments] if dropped is not None else [],
        dropped=dropped or [],
        donated=donated,
        captured=list(traced.traced.captured or ())
        if traced is not None and traced.traced is not None
        else [],
        warnings=warnings,
    )


def mesh_of(c: Compilation) -> list[tuple[str, int]] | None:
    """Return the mesh of the call ``c`` as (axis, size) pairs: ``[("data", 4), ("model", 2)]``. Of several
    meshes, return the one that most of the arguments' different shardings have. If the arguments have no
    mesh, the results are used in this way. None if the results have no mesh either."""
    tables = [c.key.shardings if c.key is not None else [], c.compiled.out_shardings if c.compiled else []]
    for table in tables:
        meshes = [tuple((axis, size) for axis, size, _ in s.mesh) for s in table if s.mesh]
        if meshes:
            return list(Counter(meshes).most_common(1)[0][0])
    return None


def trace_of(c: Compilation) -> Compilation | None:
    """Return the call whose trace ``c`` used: ``c`` itself, or the latest earlier call of the same function
    and process that was traced. None if no such call was recorded."""
    if c.traced is not None:
        return c
    for o in reversed(c.function.compilations):
        if o.process is c.process and o.call < c.call and o.traced is not None:
            return o
    return None
