"""List the machines that a program can be compiled for, and parse the names of targets such as ``v5e:4x4``.

Every figure has the address of a public page that states it. If no page states a figure, it is None, such as
the rates of a TPU v2 and the network of a TPU v3, a TPU v4 and an A100. If a figure has ``quoted``, its page
could not be opened, and another page quotes the figure. All rates are nominal peaks, the highest if pages
differ. They are not measurements, and no real program reaches them.
"""

from __future__ import annotations

import difflib
import math
import re
from typing import NoReturn

import msgspec

from jaxscope.errors import UsageError
from jaxscope.schema.targets import Target

TPU, GPU = "tpu", "cuda"
GB, GIB, TERA = 1e9, float(1 << 30), 1e12


class Figure(msgspec.Struct, frozen=True):
    """A number about a machine and the public page that states it.

    Attributes:
      value: the number; the unit depends on the field of ``Machine``.
      source: the address of the page that states the number.
      derived: how ``value`` is computed from the number on the page, or a remark; None: ``value`` is the
        number on the page.
      quoted: another page, where the number was found because the page ``source`` could not be opened; None:
        ``source`` was opened.
    """

    value: float
    source: str
    derived: str | None = None
    quoted: str | None = None


class Machine(msgspec.Struct, frozen=True):
    """One kind of chip. All figures are per chip unless stated otherwise; None: no public page states the
    figure.

    Attributes:
      name: the name in a target: ``v5e``.
      title: the name in a sentence: ``TPU v5e``.
      platform: the platform for which JAX lowers: ``tpu`` or ``cuda``.
      axes: number of axes of the torus that the chips form; 0: no torus, a switch connects the GPUs of a
        host.
      devices_per_chip: number of JAX devices for each chip.
      most: the largest number of chips in one slice (TPU); None: no limit.
      grids: slice shapes that the vendor's page lists (TPU); numbers of GPUs (``8``) or hosts x GPUs of a
        host (``2x8``) to suggest.
      memory: bytes of high-bandwidth memory, nominal.
      usable: bytes of one *device* that a program can use; the compiler reserves the remaining bytes.
      flops: element type (``bf16``, ``int8``, ...) -> peak operations per second, without sparsity.
      hbm: bytes per second between the chip and its memory.
      links: number of links of one chip; None for a GPU.
      wraps: along which axes the first and the last chip of a slice are connected: ``CUBES`` (all axes, if
        each has a multiple of 4 chips) or ``RINGS_OF_16`` (axes of 16 chips); None: unknown.
      link: bytes per second that one link of the torus transfers in one direction; for a GPU, bytes per
        second that it sends to the other GPUs of its host.
      network: bytes per second that a chip sends to other slices or hosts.
    """

    name: str
    title: str
    platform: str
    axes: int
    devices_per_chip: int
    most: int | None
    grids: tuple[str, ...]
    memory: Figure | None
    usable: Figure | None
    flops: dict[str, Figure]
    hbm: Figure | None
    links: int | None
    wraps: str | None
    link: Figure | None
    network: Figure | None


_CLOUD = "https://docs.cloud.google.com/tpu/docs/"
_V4_PAPER = "https://arxiv.org/abs/2304.01433"  # Jouppi et al., TPU v4, ISCA 2023, table 4
_V4_QUOTED = "notes on the paper, which give 6 links @ 50 GB/s of its table 4"
# "How to scale your model", by people who work on TPUs at Google: rates by chip, and which slices wrap
# around.
BOOK = "https://jax-ml.github.io/scaling-book/tpus/"
# Which slices wrap around (BOOK). CUBES: on all axes, if each axis is a multiple of 4. RINGS_OF_16: on the
# axes of 16 chips.
CUBES, RINGS_OF_16 = "cubes", "rings of 16"
_A100 = (
    "https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center/a100/pdf/"
    "nvidia-a100-datasheet-us-nvidia-1758950-r4-web.pdf"
)
_A100_QUOTED = "https://glennklockwood.com/garden/processors/A100"
_HGX_A100 = (
    "https://developer.nvidia.com/blog/"
    "introducing-hgx-a100-most-powerful-accelerated-server-platform-for-ai-hpc/"
)
_XLA_CARDS = "https://github.com/openxla/xla/blob/main/xla/backends/gpu/target_config/specs/"
_XLA_H100 = _XLA_CARDS + "h100_sxm.txtpb"
_XLA_A100 = _XLA_CARDS + "a100_sxm_80.txtpb"
_NVLINK_H100 = "https://github.com/NVIDIA/nccl/issues/1442"
_DGX_H100 = (
    "https://docs.nvidia.com/dgx-basepod/reference-architecture-infrastructure-foundation-enterprise-ai/"
    "latest/core-components.html"
)

_SQUARES = ("1x1", "2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16")
_CUBES = (
    "2x2x1",
    "2x2x2",
    "2x2x4",
    "2x4x4",
    "4x4x4",
    "4x4x8",
    "4x8x8",
    "8x8x8",
    "8x8x16",
    "8x16x16",
    "16x16x16",
)


def _ici(bidirectional_gb: float, links: int, page: str) -> Figure:
    """Return the rate of one TPU link in one direction, in bytes per second.

    Args:
      bidirectional_gb: the sum over all links of a chip in both directions, in GB/s. Google's pages state it
        as "bidirectional ICI bandwidth per chip".
      links: the number of links of a chip.
      page: the last part of the page's address.
    """
    per_link = bidirectional_gb * GB / 2 / links
    derived = f"{bidirectional_gb:g} GB/s a chip, both directions, over {links} links"
    return Figure(per_link, _CLOUD + page, derived)


def _gbit(per_chip: float, page: str, derived: str | None = None) -> Figure:
    """Return the network rate of a chip in bytes per second. ``per_chip`` is in Gbit/s, ``page`` the last
    part of the address of Google's page."""
    return Figure(per_chip * GB / 8, _CLOUD + page, derived)


def _libtpu(gib: float) -> Figure:
    """Return the memory of one device that a program can use, with its source: ``gib`` GiB, the number in
    libtpu's error for a program that does not fit."""
    return Figure(
        gib * GIB,
        "https://pypi.org/project/libtpu/0.0.42.1/",
        (
            "the available memory in its error for a program that does not fit; 0.0.50: the same or"
            " 0.01 GiB less"
        ),
    )


def _cores(ops: int, ghz: float, element_type: str) -> Figure:
    """Return the peak operations per second of an H100: 132 multiprocessors x 4 units x ``ops`` multiply-adds
    per clock of one unit x 2 operations x ``ghz``. The text of the figure has ``element_type``. The numbers
    are from XLA's file."""
    derived = f"132 x 4 units x {ops} multiply-adds x {ghz:g} GHz ({element_type})"
    return Figure(132 * 4 * ops * 2 * ghz * 1e9, _XLA_H100, derived)


def _a100(tera: float) -> Figure:
    """Return peak operations per second of an A100: ``tera`` times ``10**12``."""
    return Figure(tera * TERA, _A100, quoted=_A100_QUOTED)


MACHINES: dict[str, Machine] = {
    m.name: m
    for m in (
        Machine(
            "v2", "TPU v2", TPU, 2, 2, 256, ("2x2", "4x4", "4x8", "8x8", "8x16", "16x16"),
            memory=None,
            usable=_libtpu(7.48),
            flops={},
            hbm=None,
            links=4, wraps=None, link=None,
            network=None,
        ),
        Machine(
            "v3", "TPU v3", TPU, 2, 2, 1024, ("2x2", "4x4", "4x8", "8x8", "8x16", "16x16", "16x32", "32x32"),
            memory=Figure(32 * GIB, _CLOUD + "v3"),
            usable=_libtpu(15.48),
            flops={"bf16": Figure(123 * TERA, _CLOUD + "v3")},
            hbm=Figure(900 * GB, _CLOUD + "v3"),
            # The paper on TPU v4 has 70 GB/s, which is too little for the all-reduce rate on the page.
            links=4, wraps=None, link=Figure(340 * TERA / 1024 / 4, _CLOUD + "v3",
                ("340 TB/s of all-reduce of a pod of 1,024 chips with 4 links")),
            network=None,
        ),
        Machine(
            "v4", "TPU v4", TPU, 3, 1, 4096, _CUBES,
            memory=Figure(32 * GIB, _CLOUD + "v4"),
            usable=_libtpu(30.75),
            flops={"bf16": Figure(275 * TERA, _CLOUD + "v4"), "int8": Figure(275 * TERA, _CLOUD + "v4")},
            hbm=Figure(1200 * GB, _CLOUD + "v4"),
            links=6, wraps=CUBES, link=Figure(50 * GB, _V4_PAPER, quoted=_V4_QUOTED),
            network=None,
        ),
        Machine(
            "v5e", "TPU v5e", TPU, 2, 1, 256, _SQUARES,
            memory=Figure(16 * GIB, _CLOUD + "v5e"),
            usable=_libtpu(15.75),
            flops={"bf16": Figure(197 * TERA, _CLOUD + "v5e"), "int8": Figure(393 * TERA, _CLOUD + "v6e")},
            hbm=Figure(819 * GB, _CLOUD + "v5e"),
            links=4, wraps=RINGS_OF_16, link=_ici(400, 4, "v5e"),
            network=_gbit(25, "v5e", "6.4 Tbit/s of a pod of 256 chips"),
        ),
        Machine(
            "v5p", "TPU v5p", TPU, 3, 1, 8960, (*(c for c in _CUBES if c != "2x2x4"), "16x16x24"),
            # Rounded down on the page: the compiler refuses a program as too large for 95.74 GiB (0.0.42),
            # 95.73 (0.0.50).
            memory=Figure(95 * GIB, _CLOUD + "v5p", "95 GB, read as binary; the compiler gives more"),
            usable=_libtpu(95.74),
            flops={
                "bf16": Figure(459 * TERA, _CLOUD + "v5p"),
                "fp8": Figure(459 * TERA, _CLOUD + "v5p"),
                "int8": Figure(918 * TERA, BOOK),
            },
            hbm=Figure(2765 * GB, _CLOUD + "v5p"),
            links=6, wraps=CUBES, link=_ici(1200, 6, "v5p"),
            network=_gbit(50, "v5p"),
        ),
        Machine(
            "v6e", "TPU v6e (Trillium)", TPU, 2, 1, 256, _SQUARES,
            memory=Figure(32 * GIB, _CLOUD + "tpu7x"),
            usable=_libtpu(31.25),
            flops={
                "bf16": Figure(918 * TERA, _CLOUD + "v6e"),
                "fp8": Figure(918 * TERA, _CLOUD + "tpu7x"),
                "int8": Figure(1836 * TERA, _CLOUD + "v6e"),
            },
            hbm=Figure(1638 * GB, _CLOUD + "tpu7x"),
            links=4, wraps=RINGS_OF_16, link=_ici(800, 4, "v6e"),
            network=_gbit(100, "tpu7x"),
        ),
        Machine(
            "tpu7x", "TPU7x (Ironwood)", TPU, 3, 2, 9216, _CUBES,
            memory=Figure(192 * GIB, _CLOUD + "tpu7x"),
            usable=_libtpu(94.75),
            flops={"bf16": Figure(2307 * TERA, _CLOUD + "tpu7x"),
                "fp8": Figure(4614 * TERA, _CLOUD + "tpu7x")},
            hbm=Figure(7380 * GB, _CLOUD + "tpu7x"),
            links=6, wraps=None, link=_ici(1200, 6, "tpu7x"),
            network=_gbit(100, "tpu7x"),
        ),
        Machine(
            "h100", "NVIDIA H100 SXM 80 GB", GPU, 0, 1, None, ("1", "8", "2x8", "4x8", "16x8", "128x8"),
            memory=Figure(80 * GIB, _XLA_H100,
                ("80 GB by its name; binary ones, for more than 80 decimal ones are usable")),
            usable=Figure(84942979072, _XLA_H100),
            flops={
                "f64": _cores(32, 1.98, "f64"),
                "tf32": _cores(256, 1.8295201, "f32"),
                "bf16": _cores(512, 1.8295201, "bf16"),
                "fp8": _cores(1024, 1.8295201, "f8"),
                "int8": _cores(1024, 1.8295201, "s8"),
            },
            hbm=Figure(3352.32 * GB, _XLA_H100),
            links=None, wraps=None, link=Figure(450 * GB, _NVLINK_H100,
                ("NVLink: 900 GB/s are the sum of both directions")),
            network=Figure(400 * GB / 8, _DGX_H100,
                ("eight 400 Gbit/s ports of the compute fabric for eight GPUs")),
        ),
        Machine(
            "a100", "NVIDIA A100 SXM 80 GB", GPU, 0, 1, None, ("1", "8", "2x8", "4x8", "16x8", "128x8"),
            memory=Figure(80 * GIB, _XLA_A100,
                ("80 GB by its name; binary ones, for more than 80 decimal ones are usable")),
            usable=Figure(85100068864, _XLA_A100),
            flops={"f64": _a100(19.5), "tf32": _a100(156), "bf16": _a100(312), "int8": _a100(624)},
            hbm=Figure(2039.04 * GB, _XLA_A100),
            links=None, wraps=None, link=Figure(300 * GB, _HGX_A100, "NVLink: 600 GB/s, both directions"),
            network=None,
        ),
    )
}  # fmt: skip

GPUS_OF_A_HOST = 8  # NVLink connects so many in the DGX and HGX boards that the figures are from
_NAME = re.compile(r"(?:(\d{1,4})\*)?([a-z][a-z0-9]*):(\d{1,5}(?:x\d{1,5}){0,3})")


def parse(text: str) -> Target:
    """Parse the name of a target: ``v5e:4x4``, ``2*v5p:4x4x4`` (two slices), ``h100:8`` (8 GPUs of one host),
    ``h100:128x8`` (128 hosts).

    The compiler may still refuse a slice that is not on the vendor's page (see ``unlisted``).

    Raises:
      UsageError: there is no such machine, or it has no such grid; the hint of the error suggests names.
    """
    wanted = text.strip().lower()
    match = _NAME.fullmatch(wanted)
    if match is None or match[2] not in MACHINES:
        _refuse(f"unknown target {text[:60]!r}", wanted)
    machine = MACHINES[match[2]]
    slices = int(match[1] or 1)
    grid = tuple(map(int, match[3].split("x")))
    if not slices or not all(grid):
        _refuse(f"{text[:60]!r} has no chips", wanted)
    if machine.platform == GPU:
        if match[1]:
            _refuse(f"{machine.title}: write hosts x GPUs of a host, not slices", wanted)
        if len(grid) > 2:
            _refuse(f"{machine.title}: write a number of GPUs, or hosts x GPUs of a host", wanted)
        grid = (1, *grid) if len(grid) == 1 else grid
        if grid[1] > GPUS_OF_A_HOST:
            _refuse(f"{machine.title}: one host has {GPUS_OF_A_HOST} GPUs, not {grid[1]}", wanted)
    elif len(grid) != machine.axes:
        _refuse(f"{machine.title}: its chips form a grid of {machine.axes} axes, not {len(grid)}", wanted)
    elif machine.most is not None and math.prod(grid) > machine.most:
        _refuse(
            f"{machine.title}: one slice has at most {machine.most:,} chips, not {math.prod(grid):,}", wanted
        )
    # With a grid of two axes, a slice must fit into that of a whole pod.
    elif machine.axes == 2 and max(grid) > (side := math.isqrt(machine.most or max(grid) ** 2)):
        _refuse(f"{machine.title}: {_spelled(grid)} is not a slice of a pod, which is {side}x{side}", wanted)
    # libtpu (0.0.42, 0.0.50) accepts one chip or an even number along the first two axes.
    elif any(n > 1 and n % 2 for n in grid[:2]):
        _refuse(
            f"{machine.title}: a host has 2x2 chips, so a slice has 1 or an even number of them along"
            f" its first two axes, not {_spelled(grid)}",
            wanted,
        )
    shown = grid[1:] if machine.platform == GPU and grid[0] == 1 else grid
    name = f"{f'{slices}*' if slices > 1 else ''}{machine.name}:{_spelled(shown)}"
    devices = math.prod(grid) * slices * machine.devices_per_chip
    return Target(name, machine.name, machine.platform, grid, slices, devices)


def _spelled(grid: tuple[int, ...]) -> str:
    """Return a grid as the name of a target has it: ``4x4``."""
    return "x".join(map(str, grid))


def unlisted(name: str) -> list[str]:
    """Return the nearest slices that the vendor's page lists, if ``name`` is a TPU slice that the page does
    not list: ``["v5e:4x4", ...]`` for ``v5e:2x8``. Return an empty list if the page lists ``name``, or if
    ``name`` is a target of GPUs or no target."""
    match = _NAME.fullmatch(name)
    machine = MACHINES.get(match[2]) if match is not None else None
    if match is None or machine is None or machine.platform != TPU or match[3] in machine.grids:
        return []
    return suggestions(name)


def known() -> list[str]:
    """Return the names of the targets in ``Machine.grids``, such as ``v5e:4x4``, grouped by machine."""
    return [f"{m.name}:{grid}" for m in MACHINES.values() for grid in m.grids]


def suggestions(text: str, n: int = 3) -> list[str]:
    """Return up to ``n`` names of targets to suggest for ``text``, a name that the user may have misspelled.
    If ``text`` has the name of a machine, or a similar one, the result has the machine's targets with the
    nearest number of chips. Otherwise it has the names with the most similar spelling. Only targets in
    ``Machine.grids`` are suggested."""
    wanted = text.strip().lower()
    name, *rest = re.split(r"[:\-](?=\d|$)", wanted.rpartition("*")[2], maxsplit=1)  # v5litepod-16
    machine = name if name in MACHINES else _like_machine(name)
    if machine is None:
        return difflib.get_close_matches(wanted, known(), n, 0.4)
    sizes = [int(w[:6]) for w in re.findall(r"\d+", "".join(rest))] or [4]
    chips = max(1, math.prod(sizes[:4]))

    def distance(grid: str) -> float:
        return abs(math.log2(math.prod(map(int, grid.split("x"))) / chips))

    grids = sorted(MACHINES[machine].grids, key=distance)[:n]
    return [f"{machine}:{grid}" for grid in grids]


def _like_machine(name: str) -> str | None:
    """Return the name in ``MACHINES`` of the machine that the user probably means: ``v5e`` for ``v5litepod``;
    None: no name is similar."""
    # Other tools use names such as v7x, tpu-v5e, v5litepod, gh100.
    bare = name.replace("-", "").replace("_", "").removeprefix("tpu")
    spelled = {
        "v5lite": "v5e",
        "v5litepod": "v5e",
        "v7x": "tpu7x",
        "7x": "tpu7x",
        "v7": "tpu7x",
        "v5": "v5p",
        "v6": "v6e",
    }
    if bare in MACHINES:
        return bare
    if bare in spelled:
        return spelled[bare]
    found = difflib.get_close_matches(name, MACHINES, 1, 0.5)
    return found[0] if found else None


def _refuse(problem: str, name: str) -> NoReturn:
    """Raise a UsageError with the text ``problem`` and a hint that suggests targets for ``name``."""
    found = suggestions(name)
    hint = f"did you mean {', '.join(found)}?" if found else f"for example {', '.join(known()[::9][:4])}"
    raise UsageError(problem, hint=f"{hint} (all: jaxscope targets)", slug="no-such-target")
