"""Make run directories that hurt their readers: shapes made on purpose, and random damage; and list the
verbs.

The shapes each come from a defect that was once there. ``VERBS`` are run in this process, one after the
other, with a limit of seconds each; what was wrong is said in words.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import msgspec
import screen_runs
import zstandard

from jaxscope import cli
from jaxscope.log import store
from jaxscope.log.jobs import Job, Queue
from jaxscope.log.store import RunDir
from jaxscope.report import contract
from jaxscope.schema.targets import Target

SECRET = "hunter2-0b5e"
SECONDS, WAITING = 30.0, 300.0  # of the processor, and by the clock, that a verb may take
MEMORY = 1 << 30  # bytes, the verb's process
KEYS = ["2", "down", "enter", "3", "down", "tab", "4", "5", "6", "7", "1"]


def base(path: Path) -> RunDir:
    """Write a run with texts, output, numbers, a run within it, a queue, and all derived files."""
    run = screen_runs.typical(path)
    within = store.sub_run(run, "--model=4")
    shutil.copytree(screen_runs.typical(path.with_name("within")).path, within)
    shutil.rmtree(path.with_name("within"))
    queue = Queue(run)
    queue.put(Job("0" * 16, Target("v5e:4x2", "tpu", "v5e", (4, 2), 8, 8), 8), b"ML\xef\xbfR")
    for events in path.rglob("events"):  # the same names each time: damage is chosen by them
        for n, log in enumerate(sorted(events.iterdir(), key=lambda p: (p.name.partition("-")[0], p.suffix))):
            log.rename(log.with_name(f"{log.name.partition('-')[0]}-{n}{log.suffix}"))
    log = run.logs()[0]
    log.with_suffix(".counts").write_bytes(bytes(4096))
    run.heartbeat.touch()
    (path / "boot").mkdir(exist_ok=True)
    (path / "boot" / "1000").write_text("boot\njax\n")
    for _ in look(run.path, ["json"]):  # which leaves derived/
        pass
    return run


# -- shapes -------------------------------------------------------------------------------------------


def _log(run: Path) -> Path:
    return max((run / "events").glob("*.jsonl"), key=lambda p: p.lstat().st_size)


def _add(run: Path, data: bytes) -> None:
    with _log(run).open("ab") as f:
        f.write(data)


def _texts(run: Path, change: Callable[[str], bytes]) -> None:
    """Give the run's programs other texts."""
    lines = []
    for line in _log(run).read_bytes().splitlines():
        event = json.loads(line)
        if event["kind"] == "ProgramText":
            data = change(event["stage"])
            event["blob"] = hashlib.sha256(data).hexdigest()
            (run / "blobs" / f"{event['blob']}.zst").write_bytes(zstandard.ZstdCompressor().compress(data))
        lines.append(json.dumps(event).encode() + b"\n")
    _log(run).write_bytes(b"".join(lines))
    shutil.rmtree(run / "derived", ignore_errors=True)


def _bomb(run: Path, unit: bytes, pieces: int) -> None:
    digest, packer, packed = hashlib.sha256(), zstandard.ZstdCompressor().compressobj(), []
    for data in [b"HloModule m\n", *([unit] * pieces)]:
        digest.update(data)
        packed.append(packer.compress(data))
    packed.append(packer.flush())
    name = digest.hexdigest()
    (run / "blobs" / f"{name}.zst").write_bytes(b"".join(packed))
    log = _log(run)
    for blob in {json.loads(x)["blob"] for x in log.read_bytes().splitlines() if b"ProgramText" in x}:
        log.write_bytes(log.read_bytes().replace(blob.encode(), name.encode()))
    shutil.rmtree(run / "derived", ignore_errors=True)


def _pipes(run: Path) -> None:
    """Put a pipe under each name that is read."""
    for p in [*run.rglob("*")]:
        if p.is_file() and p != run / "meta.json" and p.suffix != ".jsonl":
            p.unlink()
            os.mkfifo(p)
    for name in ("events/00-0.jsonl", "sub/model=4/meta.json"):
        (run / name).unlink(missing_ok=True)
        os.mkfifo(run / name)


def _links(run: Path, to: str) -> None:
    log = _log(run)
    for p in [*run.rglob("*")]:
        if p.is_file() and p not in (run / "meta.json", log):
            p.unlink()
            p.symlink_to(to)
    (run / "events" / "00-0.jsonl").symlink_to(to)


def _parts(run: Path, theirs: Path) -> None:
    """Links where what is written has been written first, and a directory that leads out of the run."""
    for p in [*(run / "derived").iterdir()]:
        p.with_suffix(".part").symlink_to(theirs / "precious")
        p.unlink()
    for name in ("targets", "sub"):
        shutil.rmtree(run / name)
        (run / name).symlink_to(theirs)


def _derived_elsewhere(run: Path, theirs: Path) -> None:
    shutil.rmtree(run / "derived")
    (run / "derived").symlink_to(theirs)


def _sources(run: Path, file: str) -> None:
    data = _log(run).read_text().replace('"train.py"', json.dumps(file))
    _log(run).write_text(data)


def _meta(run: Path, text: str) -> None:
    (run / "meta.json").write_text(text)


def _started(run: Path, value: str) -> None:
    meta = json.loads((run / "meta.json").read_text()) | {"started": "@"}
    _meta(run, json.dumps(meta).replace('"@"', value))


def _names(run: Path) -> None:
    data = _log(run).read_text().replace('"name":"train_step"', f'"name":"{"x" * 1_000_000}"')
    _log(run).write_text(data)


_HLO = (
    "HloModule m, is_scheduled=true\n\nENTRY %main (p: f32[8]) -> f32[8] {\n  %p = f32[8]{0} parameter(0)\n"
)
_FRAMES = (
    'HloModule m\n\nFileNames\n1 "a.py"\n\nFunctionNames\n1 "f"\n\nFileLocations\n'
    "1 {file_name_id=1 function_name_id=1 line=1 end_line=1 column=1 end_column=2}\n\nStackFrames\n"
)
_MLIR = "module @m {\n  func.func public @main(%arg0: tensor<4xf32>) -> (tensor<4xf32>) {\n"


def frames_chain(n: int) -> str:
    rows = "".join(f"{i} {{file_location_id=1 parent_frame_id={i - 1}}}\n" for i in range(1, n))
    used = "".join(
        f'  %a{i} = f32[8]{{0}} add(%p), metadata={{op_name="x" stack_frame_id={n - i}}}\n'
        for i in range(n // 2)
    )
    return _FRAMES + rows + "\nENTRY %main (p: f32[8]) -> f32[8] {\n" + used + "}\n"


def calls(n: int, last: int | None = None) -> str:
    """Computations that call the one before; the first calls ``last``."""
    made = "".join(
        f"%x{i} (p: f32[]) -> f32[] {{\n  %p = f32[] parameter(0)\n"
        f"  ROOT %c = f32[] call(%p), to_apply=%x{i - 1 if i else last}\n}}\n"
        for i in range(n)
    )
    return "HloModule m\n" + made + f"{_HLO[31:]}  ROOT %c = f32[] call(%p), to_apply=%x{n - 1}\n}}\n"


def whiles(n: int) -> str:
    made = "".join(
        f"%b{i} (p: f32[]) -> f32[] {{\n  %p = f32[] parameter(0)\n  ROOT %w = f32[] while(%p), condition=%c, "
        f'body=%b{i - 1}, backend_config={{"known_trip_count":{{"n":"99999"}}}}\n}}\n'
        for i in range(n)
    )
    return (
        "HloModule m\n" + made + f"{_HLO[31:]}  ROOT %w = f32[] while(%p), condition=%c, body=%b{n - 1}\n}}\n"
    )


def dimensions(n: int) -> str:
    return _HLO + f"  ROOT %a = f32[{'8,' * n}8] add(%p)\n}}\n"


def locations(n: int) -> str:
    """Locations that each name the next one twice."""
    more = "".join(f"#loc{i} = loc(fused[#loc{i + 1}, #loc{i + 1}])\n" for i in range(1, n))
    return f'{_MLIR}    %0 = stablehlo.add %arg0 : tensor<4xf32> loc(#loc1)\n  }}\n}}\n{more}#loc{n} = loc("a.py":1:1)\n'


def brackets(n: int) -> str:
    return f"{_MLIR}    %0 = stablehlo.add %arg0 : {'(' * n}\n    %c = stablehlo.constant dense<{'[' * n}\n  }}\n}}\n"


TEXTS: dict[str, Callable[[int], str]] = {
    "frames_chain": frames_chain, "calls_chain": calls, "calls_circle": lambda n: calls(n, n - 1), "whiles": whiles,
    "dimensions": dimensions, "locations": locations, "brackets": brackets,
}  # fmt: skip


def _both(hlo: str, stablehlo: str) -> Callable[[str], bytes]:
    return lambda stage: (hlo if stage == "hlo" else stablehlo).encode()


def _replaced(old: str, new: str) -> Callable[[str], bytes]:
    texts = screen_runs.texts("train.py")
    return lambda stage: texts[stage].replace(old, new).encode("utf-8", "surrogatepass")


Shape = Callable[[Path, Path], object]  # the run's directory, and one of the reader's
SHAPES: dict[str, Shape] = {
    "links where parts were written": _parts,
    "derived leads elsewhere": _derived_elsewhere,
    "every file is a pipe": lambda run, _: _pipes(run),
    "every file is /dev/zero": lambda run, _: _links(run, "/dev/zero"),
    "every file is /proc/self/environ": lambda run, _: _links(run, "/proc/self/environ"),
    "a loop of links": lambda run, _: _links(run, "loop"),
    "the environment as source": lambda run, _: _sources(run, "/proc/self/environ"),
    "a key as source": lambda run, theirs: _sources(run, str(theirs / "id_rsa")),
    "a hidden file as source": lambda run, theirs: _sources(run, str(theirs / ".hidden.py")),
    "a pipe as source": lambda run, theirs: _sources(run, str(theirs / "pipe")),
    "a text of 1.9 GiB": lambda run, _: _bomb(run, bytes(1 << 20), 1900),
    "a text of 60 million lines": lambda run, _: _bomb(run, b"\n" * (1 << 20), 60),
    "a text of 60 MiB of lines": lambda run, _: _bomb(run, b"  %a = f32[8]{0} add(%b, %c)\n" * 36157, 60),
    "a sparse log of 256 MiB": lambda run, _: os.truncate(run / "events" / _sparse(run), 256 << 20),
    "a line of 10 million lists": lambda run, _: _add(run, b'{"kind":"X","a":[' + b"[]," * 10**7 + b"[]]}\n"),
    "many typed lists": lambda run, _: _add(
        run, (b'{"kind":"Missed","key":{"arguments":[' + b"{}," * 400_000 + b"{}]}}\n") * 20
    ),
    "deep JSON in a log": lambda run, _: _add(run, b"[" * 10**6 + b'\n{"kind":"X","a":' + b"[" * 900 + b"]" * 900 + b"}\n"),
    "deep meta.json": lambda run, _: _meta(run, "[" * 200_000),
    "meta.json with a list for a name": lambda run, _: _meta(run, '{"name":[1],"argv":5,"options":[],"settings":7}'),
    "meta.json of 64 MiB": lambda run, _: _meta(run, '{"name":"' + "x" * (64 << 20) + '"}'),
    "meta.json that is no UTF-8": lambda run, _: (run / "meta.json").write_bytes(b"\xff\xfe\0"),
    "started at 10^400": lambda run, _: _started(run, "1" + "0" * 400),
    "started at infinity": lambda run, _: _started(run, "1e999"),
    "started at 10^300": lambda run, _: _started(run, "1e300"),
    "lone surrogates in texts": lambda run, _: _texts(run, _replaced("jit_train_step", "jit_\ud800train")),
    "a digit that is none": lambda run, _: _texts(run, _replaced("num_partitions = 8", "num_partitions = ²")),
    "a count of 5,000 digits": lambda run, _: _texts(run, _replaced("=8", "=" + "8" * 5000)),
    "names of a megabyte": lambda run, _: _names(run),
    "a run that is a file": lambda run, _: (shutil.rmtree(run / "events"), (run / "events").write_text("x")),
    "events is gone": lambda run, _: shutil.rmtree(run / "events"),
    **{
        f"texts: {name}": lambda run, _, make=make: _texts(run, _both(make(4_000), make(4_000)))
        for name, make in TEXTS.items()
    },
}  # fmt: skip


def _sparse(run: Path) -> str:
    (run / "events" / "00-0.jsonl").touch()
    return "00-0.jsonl"


def theirs(path: Path) -> Path:
    """Files of the reader's, which no run may touch or show."""
    path.mkdir()
    for name in ("precious", "id_rsa", ".hidden.py"):
        (path / name).write_text(f"{SECRET}\n" * 20)
    os.mkfifo(path / "pipe")
    return path


def unharmed(path: Path) -> bool:
    return sorted(p.name for p in path.iterdir()) == [".hidden.py", "id_rsa", "pipe", "precious"] and all(
        (path / n).read_text() == f"{SECRET}\n" * 20 for n in ("precious", "id_rsa", ".hidden.py")
    )


# -- random damage ------------------------------------------------------------------------------------

NUMBERS = [0, -1, 2**31, 2**63 - 1, 2**63, 2**64, -(2**63), 10**30, 10**400, 1e308, -1e308, 0.5, True]
WORDS = [
    "", "\0", "\x1b]0;x\x07\x1b[2J", "[red]x[/red]", "[/", "a" * 10_000, "../../etc/passwd", "/proc/self/environ",
    "é\u202e\ud800", "\n::error::x", "<script>", "%s%n", "NaN", "1" * 500, "f32[", "f32[99999999999999999999]", "²",
    "f32[-1]", "{", "#1", "a.b.c", "\udcff", "/", "step", "call", "trace", "identity", "value", "train_step",
]  # fmt: skip


def _other(chance: random.Random, value: object) -> object:
    if isinstance(value, str) and chance.random() < 0.75:
        word = chance.choice(WORDS)
        at = chance.randrange(len(value) + 1)
        return chance.choice([word, value[:at] + word + value[at:], value[:at]])
    if isinstance(value, (int, float)) and chance.random() < 0.75:
        return chance.choice([*NUMBERS, value + 1, -value, value * 2])
    return chance.choice([None, [], {}, "", 0, -1, True, [None], [[]], {"a": 1}, *WORDS, *NUMBERS])


def _changed(chance: random.Random, value: object) -> object:
    """Return ``value`` with one item of it changed."""
    if isinstance(value, dict) and value:
        key, how = chance.choice(list(value)), chance.random()
        if how < 0.12:
            return {k: v for k, v in value.items() if k != key}
        if how < 0.18:
            return {**value, chance.choice(WORDS): value[key]}
        return {**value, key: (_other if how < 0.45 else _changed)(chance, value[key])}
    if isinstance(value, list) and value:
        at, how = chance.randrange(len(value)), chance.random()
        if how < 0.1:
            return value[:at] + value[at + 1 :]
        if how < 0.25:
            return value[:at] + [value[at]] * chance.choice([2, 3, 50]) + value[at:]
        return [*value[:at], (_other if how < 0.4 else _changed)(chance, value[at]), *value[at + 1 :]]
    return _other(chance, value)


def _line(chance: random.Random, line: bytes) -> bytes:
    try:
        return json.dumps(_changed(chance, json.loads(line)), ensure_ascii=chance.random() < 0.9).encode(
            "utf-8", "surrogatepass"
        )
    except (ValueError, OverflowError):
        return line


def _bytes(chance: random.Random, data: bytes) -> bytes:
    made, at = bytearray(data), chance.randrange(len(data) + 1)
    how = chance.randrange(5)
    if how == 0:
        return data[:at]
    if how == 1:
        return chance.randbytes(chance.choice([0, 1, 10, 1000, 100_000]))
    if how == 2:
        made[at : at + chance.randrange(200)] = chance.randbytes(chance.randrange(200))
    for _ in range(chance.choice([1, 5, 50]) if how > 2 and made else 0):
        made[chance.randrange(len(made))] ^= 1 << chance.randrange(8)
    return bytes(made)


def _in_blob(chance: random.Random, p: Path, run: Path) -> None:
    """Another text under the name that its content has, and the log says so."""
    text = zstandard.ZstdDecompressor().decompress(p.read_bytes(), max_output_size=1 << 24)
    for _ in range(chance.choice([1, 3, 20])):
        at, word = (
            chance.randrange(len(text) + 1),
            chance.choice([*WORDS, "(", "{", "loc(", "dense<", "%a = "]),
        )
        text = text[:at] + word.encode("utf-8", "surrogatepass") + text[at + chance.choice([0, 1, 20]) :]
    name = hashlib.sha256(text).hexdigest()
    (run / "blobs" / f"{name}.zst").write_bytes(zstandard.ZstdCompressor().compress(text))
    log = _log(run)
    if log.is_file():  # an earlier change may have put a pipe there
        log.write_bytes(log.read_bytes().replace(p.stem.encode(), name.encode()))


def mutate(run: Path, chance: random.Random) -> list[str]:
    """Damage a few files of ``run``; what was done."""
    done: list[str] = []
    for _ in range(chance.choice([1, 1, 1, 2, 4, 10])):
        there = sorted(p for p in run.rglob("*") if p.is_file() and not p.is_symlink())
        weight = {".jsonl": 12.0, ".json": 4.0, ".msgpack": 3.0, ".zst": 3.0}
        if not there:
            break
        p = chance.choices(there, [weight.get(q.suffix, 0.5) for q in there])[0]
        how = chance.choices(["typed", "bytes", "lines", "place"], [10, 6, 4, 2])[0]
        done.append(f"{how} {p.relative_to(run)}")
        if how == "place":
            p.unlink()
            kind = chance.randrange(6)
            if kind == 0:
                os.mkfifo(p)
            elif kind == 1:
                p.symlink_to(chance.choice(["/dev/zero", "/proc/self/environ", p.name, "..", "/dev/tty"]))
            elif kind == 2:
                p.mkdir()
            elif kind == 3:
                other = chance.choice(there)
                shutil.copy(other if other.is_file() else __file__, p)
            elif kind == 4:
                shutil.rmtree(p.parent if p.parent != run else run / "blobs", ignore_errors=True)
        elif p.suffix == ".zst" and how != "bytes":
            with contextlib.suppress(zstandard.ZstdError, OSError, ValueError):
                _in_blob(chance, p, run)
        elif p.suffix == ".msgpack" and how == "typed":
            p.write_bytes(_packed(chance, p.read_bytes()))
        elif p.suffix in (".json", ".jsonl", ".job") and how != "bytes":
            lines = p.read_bytes().split(b"\n") if p.suffix == ".jsonl" else [p.read_bytes()]
            for _ in range(chance.choice([1, 1, 3, 20])):
                i, j = chance.randrange(len(lines)), chance.randrange(len(lines))
                if how == "typed":
                    lines[i] = _line(chance, lines[i])
                else:
                    lines[i], lines[j] = lines[j], lines[i]
                    lines.insert(i, lines[j])
            p.write_bytes(b"\n".join(lines))
        else:
            p.write_bytes(_bytes(chance, p.read_bytes()))
    return done


def _packed(chance: random.Random, data: bytes) -> bytes:
    """Return a derived file with another value in it."""
    try:
        made = _changed(chance, msgspec.msgpack.decode(data[16:]))
        piece = msgspec.msgpack.encode(made)
        return data[:8] + len(piece).to_bytes(8) + piece
    except (ValueError, OverflowError, UnicodeEncodeError):
        return _bytes(chance, data)


# -- reading ------------------------------------------------------------------------------------------


def _argv(run: Path, verb: str) -> list[str]:
    out = str(run.parent / "out")
    return {
        "json": ["report", str(run), "--format", "json", "-o", out],
        "text": ["report", str(run)],
        "all": ["report", str(run), "--all"],
        "function": ["report", str(run), "--function", "train_step"],
        "check": ["check", str(run), "--no-recompiles-after", "1"],
        "full": ["check", str(run), "--output-format", "full", "--no-recompiles-after", "0"],
        "junit": ["check", str(run), "--output-format", "junit", "--no-recompiles-after", "0"],
        "sarif": ["check", str(run), "--output-format", "sarif", "--no-recompiles-after", "0"],
        "github": ["check", str(run), "--output-format", "github", "--no-recompiles-after", "0"],
        "diff": ["diff", str(run), str(run)],
        "diff json": ["diff", str(run), str(run), "--format", "json"],
        "dump": ["dump", str(run), "-o", out + ".texts"],
        "runs": ["runs"],
        "hlo": ["hlo", str(run.parent / "text.hlo"), "--stablehlo", str(run.parent / "text.mlir")],
        "view": ["view"],
    }[verb]


VERBS = (
    "json", "text", "function", "check", "full", "junit", "sarif", "github", "diff", "diff json", "dump", "runs", "hlo",
)  # fmt: skip


VIEWED = {
    "every file is a pipe",
    "lone surrogates in texts",
    "names of a megabyte",
}  # by the view, too: it takes long


class TooLong(BaseException):
    pass


def _too_long(*_: object) -> None:
    raise TooLong


def look(run: Path, verbs: list[str] | tuple[str, ...]) -> Iterator[tuple[str, float, str]]:
    """Run each verb on ``run``; yield it, its seconds, and what was wrong (empty: nothing)."""
    before = [(s, signal.signal(s, _too_long)) for s in (signal.SIGALRM, signal.SIGPROF)]
    home = os.environ.get("JAXSCOPE_HOME")
    os.environ["JAXSCOPE_HOME"] = str(run.parent.parent)  # the runs of ``runs`` lie beside this one
    try:
        for verb in verbs:
            began = time.process_time()
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            signal.setitimer(signal.ITIMER_REAL, WAITING)
            try:
                wrong = _view(run) if verb == "view" else _verb(run, verb)
            except TooLong:
                wrong = f"longer than {SECONDS:g} s of the processor"
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
                signal.setitimer(signal.ITIMER_REAL, 0)
            yield verb, time.process_time() - began, wrong
    finally:
        for number, handler in before:
            signal.signal(number, handler)
        if home is None:
            del os.environ["JAXSCOPE_HOME"]
        else:
            os.environ["JAXSCOPE_HOME"] = home


def _verb(run: Path, verb: str) -> str:
    if verb == "hlo":
        _give_texts(run)
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    old = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = out, err
    try:
        code = cli.command(_argv(run, verb))
    except TooLong:
        raise
    except BaseException as e:
        import traceback

        return "".join(traceback.format_exception(e))[-1500:]
    finally:
        sys.stdout, sys.stderr = old
    shown, said = (s.buffer.getvalue().decode("utf-8", "replace") for s in (out, err))
    if "of jaxscope's own" in said or "Traceback" in said:
        return said[-1800:]
    if SECRET in shown + said:
        return "shows a file of the reader's"
    if any(not (c.isprintable() or c == "\n") for c in shown + said):
        return "a control character in the output"
    if verb == "json" and code == 0:
        try:
            msgspec.json.decode((run.parent / "out").read_bytes(), type=contract.Report)
        except msgspec.ValidationError as e:
            return f"not what the schema says: {e}"
    if code == 1 and verb == "dump" and "nothing was compiled" in said:
        return ""
    if code == 1 and verb not in ("check", "full", "junit", "sarif", "github"):
        return f"exit code 1: {said[-300:]}"
    if code == 1 and not shown:
        return f"exit code 1 without a finding: {said[-300:]}"
    return "" if code in (0, 1, 2) else f"exit code {code}"


def _give_texts(run: Path) -> None:
    """Write the run's two longest texts as files, as ``hlo`` reads them; of a bomb, as much as is read
    anyway.
    """
    found = {"hlo": b"HloModule m\n", "mlir": b"module {}\n"}
    for p in sorted((run / "blobs").glob("*.zst")) if (run / "blobs").is_dir() else ():
        with contextlib.suppress(zstandard.ZstdError, OSError):
            if p.is_file() and not p.is_symlink():
                with p.open("rb") as f, zstandard.ZstdDecompressor().stream_reader(f) as reader:
                    data = reader.read(80 << 20)
                found["hlo" if data.startswith(b"HloModule") else "mlir"] = data
    for ending, data in found.items():
        (run.parent / f"text.{ending}").write_bytes(data)


def _view(run: Path) -> str:
    """Open the view, headless, and go through its screens when it has read the run and drawn conclusions."""
    import textual.app
    import textual.pilot
    from screens import idle, settled

    from jaxscope.tui.app import App

    async def through() -> None:
        app = App(RunDir(run))
        async with app.run_test(size=(110, 40)) as pilot:
            await settled(pilot)
            for key in KEYS:
                await pilot.press(key)
                await pilot.pause()

    try:
        with (
            mock.patch.object(textual.app, "wait_for_idle", idle),
            mock.patch.object(textual.pilot, "wait_for_idle", idle),
        ):
            asyncio.run(through())
    except TooLong:
        raise
    except BaseException as e:
        import traceback

        return "".join(traceback.format_exception(e))[-1500:]
    return ""
