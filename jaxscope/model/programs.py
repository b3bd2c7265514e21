"""The programs of a run, read: what their texts say, and what the recording adds to it.

Reading a text takes up to seconds; what was made of it is kept beside the run under ``derived/``, which may
be deleted at any time.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator

import msgspec

from jaxscope.analysis import programs
from jaxscope.analysis.hlo.fusions import Fusion
from jaxscope.analysis.programs import NOTHING, Around, Texts
from jaxscope.log import files
from jaxscope.log.store import RunDir
from jaxscope.model.records import Compilation, Program
from jaxscope.model.xla_warnings import Overheard

PIECE = 4_000  # fusions: about 4 ms
MAX_KEPT = 64 << 20  # bytes of what was made of a text; a text of 64 MiB makes half of that
# Made here, once: two threads that are the first to decode a type crash msgspec (0.22).
_FUSIONS = msgspec.msgpack.Decoder(list[Fusion])
_TEXTS = msgspec.msgpack.Decoder(Texts)


class Reader:
    """Reads the programs of the run in ``directory``, each once."""

    def __init__(self, directory: RunDir, heard: Overheard | None = None) -> None:
        self._directory = directory
        self._heard = heard
        self._read: dict[tuple[object, ...], Texts] = {}
        self.unreadable: set[str] = set()  # blobs that are gone or damaged, of those that were asked for

    def texts(self, p: Program) -> Texts:
        """What the texts of ``p`` say."""
        blobs = p.texts.get("hlo"), p.texts.get("stablehlo")
        heard = self._heard.of(p) if self._heard is not None and p.asked is None else None
        if blobs == (None, None) and not heard:
            return NOTHING if heard is None else Texts(None, None, [])
        key = (p.id, *blobs, None if heard is None else tuple(heard))
        if key not in self._read:
            self._read[key] = self._load(p, *blobs, heard)
        return self._read[key]

    def _load(self, p: Program, hlo: str | None, stablehlo: str | None, heard: list[str] | None) -> Texts:
        return read_texts(self._directory, hlo, stablehlo, circumstances(p, heard), self.unreadable)


def read_texts(
    directory: RunDir,
    hlo: str | None,
    stablehlo: str | None,
    around: Around,
    unreadable: set[str] | None = None,
) -> Texts:
    """What two texts of the run in ``directory`` say: as it is kept there, else read now and kept.

    ``unreadable`` is added to; what is made without a text that should be there is not kept.
    """
    name = hashlib.sha256(msgspec.msgpack.encode((programs.VERSION, hlo, stablehlo, around))).hexdigest()[:32]
    kept = directory.path / "derived" / f"{name}.msgpack"
    try:
        return _unpacked(files.read(kept, MAX_KEPT, within=directory.path))
    except (OSError, ValueError, RecursionError):  # msgspec's errors are ValueErrors
        pass
    texts = {blob: _text(directory, blob) for blob in (hlo, stablehlo)}
    try:
        found = programs.analyse(texts[hlo], texts[stablehlo], around)
    except Exception:  # no compiler wrote that
        texts, found = dict.fromkeys(texts), NOTHING
    lost = {blob for blob, text in texts.items() if blob is not None and text is None}
    if lost:
        if unreadable is not None:
            unreadable |= lost
        return found
    try:
        files.make_directory(kept.parent, within=directory.path)
        files.write(kept, b"".join(_packed(found)), within=directory.path)
    except (
        OSError,
        ValueError,
        OverflowError,
    ):  # another's run, a full disk, 2^64 flops, a lone surrogate: read again next time
        pass
    return found


def _packed(found: Texts) -> Iterator[bytes]:
    """How many pieces, then each behind its length: all but the fusions, and these, PIECE at a time.

    Nothing else of this process runs while msgspec decodes one piece: the 460,000 fusions of a text of 100 MB
    would be half a second in which no key of a view is heard.
    """
    fusions: list[Fusion] = []
    if found.hlo is not None:
        fusions = found.hlo.fusions.each
        without = msgspec.structs.replace(found.hlo.fusions, each=[])
        found = msgspec.structs.replace(found, hlo=msgspec.structs.replace(found.hlo, fusions=without))
    pieces = [found, *(fusions[at : at + PIECE] for at in range(0, len(fusions), PIECE))]
    yield len(pieces).to_bytes(8)
    for piece in map(msgspec.msgpack.encode, pieces):
        yield len(piece).to_bytes(8)
        yield piece


def _unpacked(data: bytes) -> Texts:
    """
    Raises:
      ValueError: nobody here wrote that.
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
    try:
        if blob is None:
            return None
        return directory.data(blob, programs.MAX_ANALYSED).decode("utf-8", "backslashreplace")
    except Exception:  # the blob is damaged or gone: the rest is still worth reading
        return None


def circumstances(p: Program, heard: list[str] | None = None) -> Around:
    """What was recorded of the call that ``p`` was first compiled for; ``heard``: warnings of its compilation."""
    c = next((c for c in p.compilations if c.key is not None), None)
    if c is None or c.key is None:
        return Around(heard=heard)
    traced = trace_of(c)
    dropped = p.compiled.dropped_arguments if p.compiled is not None else []
    donated = p.lowered.donated if p.lowered is not None else None
    if p.asked is not None:
        dropped, donated = list(p.asked.dropped), list(p.asked.donated)
    return Around(
        mesh=mesh_of(c),
        paths=[leaf.path for leaf in c.key.arguments] if dropped is not None else [],
        dropped=dropped or [],
        donated=donated,
        captured=list(traced.traced.captured or ())
        if traced is not None and traced.traced is not None
        else [],
        heard=heard,
    )


def mesh_of(c: Compilation) -> list[tuple[str, int]] | None:
    """The mesh that most of the arguments, else the results, lie on."""
    tables = [c.key.shardings if c.key is not None else [], c.compiled.out_shardings if c.compiled else []]
    for table in tables:
        meshes = [tuple((axis, size) for axis, size, _ in s.mesh) for s in table if s.mesh]
        if meshes:
            return list(Counter(meshes).most_common(1)[0][0])
    return None


def trace_of(c: Compilation) -> Compilation | None:
    """``c`` itself, or the latest earlier call of its function that was traced."""
    if c.traced is not None:
        return c
    for o in reversed(c.function.compilations):
        if o.process is c.process and o.call < c.call and o.traced is not None:
            return o
    return None
