"""The page of a rule names the limits that the rule has."""

import pytest

from jaxscope.analysis import bucketing, repeated_products
from jaxscope.analysis.stablehlo import broadcast_sums, set_elements, stacked_results, unequal_ranks
from jaxscope.analysis.stablehlo import row_gradients as tables
from jaxscope.analysis.stablehlo.partial_sorts import FEW
from jaxscope.capture import rounding
from jaxscope.model import arrays, call_places
from jaxscope.model import line_times as line_times_model
from jaxscope.present.text import size
from jaxscope.rules import (
    arguments,
    batched_branches,
    cheaper_forms,
    computing_operations,
    copied_arrays,
    debug_settings,
    devices,
    donation,
    each_program,
    eager_compilations,
    element_reads,
    fast_path,
    finding_parts,
    functions_outside_jit,
    inserted_collectives,
    jacobians,
    line_times,
    live_arrays,
    loop_calls,
    memory_scale,
    outside_jit,
    partial_sorts,
    precision,
    recompile_rate,
    registry,
    replicated_work,
    row_gradients,
    sample_sites,
    statics,
    temporaries,
    transfers,
    unrolled_loops,
    unused_results,
)

WORDS = {2: "two", 3: "three", 4: "four", 6: "six", 8: "eight", 10: "ten"}
SHARES = {
    0.1: "a tenth",
    0.2: "a fifth",
    0.05: "a twentieth",
    0.4: "two fifths",
    0.25: "a quarter",
    0.02: "a fiftieth",
    0.01: "a hundredth",
    0.9: "nine tenths",
}


def n(number: int) -> str:
    return WORDS.get(number, str(number))


def share(part: float) -> str:
    return SHARES.get(round(part, 6), str(part))


def b(bytes: int) -> str:
    return size(bytes).replace(".0 ", " ")


NOTED, WARNED = (f"1/{round(1 / part)}" for part in (memory_scale.WORTH_A_NOTE, memory_scale.WORTH_A_WARNING))
ON_A_CPU = round(memory_scale.WORTH_A_NOTE * memory_scale.ASSUMED) >> 20
EACH_LINE = f"at most {n(call_places.PLACES)} lines call the"
STATED = {
    "JX101": (
        f"at most {n(bucketing.MOST)} sizes, all of them powers of two and at least {arguments.SMALLEST}",
        f"at most {n(bucketing.MOST)} sizes, at least {n(arguments.CALLS_A_SIZE)} calls for each size",
        EACH_LINE,
    ),
    "JX102": (EACH_LINE,),
    "JX105": (EACH_LINE,),
    "JX107": (
        f"at most {n(statics.MODES)} values, or at most {n(statics.FEW)} if they are floats",
        f"at most {n(statics.MODES)} values differ only in names and flags",
        EACH_LINE,
    ),
    "JX108": (EACH_LINE,),
    "JX109": (EACH_LINE,),
    "JX110": (EACH_LINE,),
    "JX120": (EACH_LINE,),
    "JX127": (f"at least {fast_path.MANY} numbers", f"at least {fast_path.VERY_MANY} numbers"),
    "JX123": (f"Up to {n(fast_path.FEW)} such calls for each program",),
    "JX125": (f"Up to {n(fast_path.FEW)} such calls for each program",),
    "JX132": (
        f"at least {n(recompile_rate.FEWEST)} of its last {recompile_rate.WINDOW} calls",
        f"at least {n(recompile_rate.FEWEST)} times",
    ),
    "JX133": (
        f"at least {eager_compilations.BARRAGE} compilations of the line repeat an earlier one of the same line",
        f"at least {share(eager_compilations.SHARE)} of the total time",
        f"or {share(eager_compilations.SHARE * eager_compilations.SOME)} if the line causes at least"
        f" {eager_compilations.BARRAGE} compilations",
        f"one of {n(outside_jit.SEVERAL)} or more",
        f"its compilations took at least {share(eager_compilations.ONCE)} of the total time.",
        f"at least {eager_compilations.BARRAGE} compilations in {n(functions_outside_jit.FEW_LINES)} or more lines",
        f"at least {share(functions_outside_jit.TOGETHER)} of the total time",
        f"at least {share(functions_outside_jit.WHOLE)} and two lines",
    ),
    "JX202": (
        f"at least {n(unrolled_loops.TURN)} operations {n(unrolled_loops.TURNS)} times or more",
        f"less than {100 * unrolled_loops.LITTLE_OF_ALL:.0f} % of the time of all compilations and less than"
        f" {100 * unrolled_loops.LITTLE_OF_RUN:g} % of the run",
        f"have {unrolled_loops.LARGE_TURN * unrolled_loops.TURNS} or more operations, which are at least"
        f" {share(unrolled_loops.SMALL_TURNS)}",
        f"At least {unrolled_loops.FEW_DRAWS} of its draws",
        f"the line that runs the model takes at least {share(sample_sites.SHARE)}",
    ),
    "JX204": (
        f"at least {n(loop_calls.FEWEST)} rows",
        f"at least {n(loop_calls.FEWEST)} calls in each step",
    ),
    "JX206": (f"(at least {each_program.MANY:,} operations on a CPU, or {100 * each_program.LONG:.0f} % of",),
    "JX209": (
        "at most an eighth" if FEW == 8 else "",
        f"at least {partial_sorts.LEAST:,} elements ({partial_sorts.MANY:,} if",
    ),
    "JX309": (f"N is at least {unequal_ranks.FEWEST}.",),
    "JX211": (
        f"at least {cheaper_forms.LEAST:,} operations in one call ({each_program.MANY:,} if",
        f"at least {share(cheaper_forms.SHARE)} of the program's operations",
        f"{cheaper_forms.LEAST // cheaper_forms.IN_LOOP:,} in one",
        f"save {each_program.FASTER} times as many operations",
        "at most a quarter" if cheaper_forms.TIMES == 4 else "",
        f"counts as {broadcast_sums.ELEMENT} operations",
        f"that is set counts as {set_elements.ELEMENT} operations",
    ),
    "JX210": (
        f"{jacobians.TIMES} times as many",
        f"at least {jacobians.FEWEST} passes",
        f"at least {jacobians.BACKWARD + 1} parameters",
        f"at least {share(jacobians.SHARE)} of the measured time",
    ),
    "JX302": (
        f"at least {b(finding_parts.MIB // 16)} and at least {share(finding_parts.SMALL)} of the program's peak memory",
    ),
    "JX401": (
        f"at least {b(finding_parts.MIB)} per call",
        f"{inserted_collectives.FLOPS_PER_BYTE} floating-point operations",
        f"at least {b(inserted_collectives.SCANNED)}",
    ),
    "JX501": (
        f"at least {n(arrays.FEWEST)} snapshots at different steps",
        f"at least {n(arrays.FEWEST_BY_TIME)} snapshots at different times",
        f"less than {b(live_arrays.SMALL)} in each step",
        f"less than {b(live_arrays.SMALL_CONTAINER)} are left out",
    ),
    "JX502": (
        f"at least {NOTED} of a device's memory",
        f"at least {share(live_arrays.SMALL_SHARE)} of the live arrays",
        f"at least {ON_A_CPU} MiB",
        f"at least {WARNED} of the memory is saved",
    ),
    "JX505": (f"less than {b(donation.FEW_BYTES)}, or less than {share(finding_parts.SMALL)}",),
    "JX507": (f"at least {b(finding_parts.MIB)} that a function reads",),
    "JX508": (f"at least {b(finding_parts.MIB)} together",),
    "JX509": (
        f"at least {share(devices.SHARE)} of the larger amount",
        f"at least {NOTED} of a device's memory",
        f"a warning if the difference is at least {WARNED}",
        f"at least {ON_A_CPU} MiB",
    ),
    "JX510": (f"at least {share(devices.FULL)} were in use",),
    "JX511": (
        f"at least {n(transfers.OFTEN)} calls",
        f"less than {b(transfers.LITTLE)}",
        f"less than {b(transfers.SMALL)} that take less than {share(transfers.FEW)} of the run's time",
    ),
    "JX213": (f"at least {NOTED} of the memory", f"a warning if it takes at least {WARNED}"),
    "JX514": (
        f"at least {NOTED} of the memory of a device",
        f"at most {share(unused_results.FEW)} of the elements along the first axis",
        f"the function itself reads at most {share(stacked_results.READ)}",
        f"at least {share(unused_results.MUCH)} of the function's operations",
    ),
    "JX604": (
        f"{share(element_reads.SHARE)} of the run's time or more",
        f"less than {element_reads.CONVERTED / 1e6:.0f} MB per second",
        f"arrays of {element_reads.LONG_LIST >> 10} KiB or more",
    ),
    "JX515": (
        f"at least {share(repeated_products.SHARE)} of their operations",
        f"less than {share(replicated_work.SHARE)} of the operations",
        f"operands: at least {share(replicated_work.GATHERED)} of the operations of the function",
    ),
    "JX512": (f"at least {share(replicated_work.SHARE)} as many operations",),
    "JX601": (
        f"{share(transfers.MOST_STEPS)} of the steps since the first time (at least {n(transfers.FEWEST_STEPS)} steps)",
        f"at least {share(transfers.PHASE)} of all steps",
        f"at least {transfers.FEWEST} times in the run and at least {n(transfers.FEWEST_A_STEP)} times in",
        f"at least {share(transfers.MUCH_UNCOUNTED)} of the time",
        f"less than {share(transfers.MUCH)} of the time",
        f"less than {share(transfers.FEW)} of the run's time",
        "(on a CPU a tenth" if transfers.FEW_ON_A_CPU == 0.1 else "",
    ),
    "JX212": (
        share(batched_branches.FEWEST),
        "at least half of the program's operations" if batched_branches.MUCH == 0.5 else "",
    ),
    "JX214": (
        f"at least {tables.LEAST:,} numbers",
        "at most an eighth of the rows" if tables.TIMES == 8 else "",
        share(row_gradients.SHARE),
        "at least half of the program's operations" if row_gradients.MUCH == 0.5 else "",
    ),
    "JX306": (
        f"the first {rounding.ROWS:,} rows and {rounding.COLUMNS} columns",
        f"at least {100 * precision.MERGED:.0f} % are equal in float32",
        f"At least {100 * precision.MERGED:.0f} % of the integers",
    ),
    "JX516": ("at most a sixteenth" if temporaries.TIMES == 16 else "",),
    "JX605": (
        f"at least {share(line_times.OPERATIONS_SHARE)} of the program's measured time",
        f"jit would save less than {share(line_times.LEAST_SAVED)}",
        f"that of at least {line_times.MANY_CALLS} calls",
    ),
    "JX607": (f"at least {copied_arrays.PARTS} times as large",),
    "JX608": (
        f"at least {share(line_times.CALLS_SHARE)} of the program",
        f"at least {line_times.CALLS_MUCH:.0%}, else a note".replace("%", " %"),
        f"is at most {computing_operations.SMALL:,}",
        f"at least {line_times.PYTHON_SHARE:.0%} of the measured time and {line_times_model.LONG_S:.0f} seconds".replace(
            "%", " %"
        ),
        f"warning from {line_times.PYTHON_MUCH:.0%} on".replace("%", " %"),
    ),
    "JX609": (f"at least {share(debug_settings.SHARE)} of its time",),
    "JX602": (
        f"at least {b(transfers.LARGE)} at a time",
        f"{n(transfers.OFTEN)} times or more",
        f"at least {b(transfers.ROWS)}, and",
        f"at least {b(transfers.IN_ALL)}",
    ),
}


@pytest.mark.parametrize("code", STATED)
def test_a_page_names_the_limits_of_its_rule(code):
    page = " ".join(registry.rules()[code].doc.split())
    assert [stated for stated in STATED[code] if stated not in page] == []
