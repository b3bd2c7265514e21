"""Templates that say to what a finding or its evidence applies: targets (machines given with ``--target``),
settings of ``run --vary``, and programs, and those around the text of any finding."""

TEMPLATES = {
    "for-targets": " (for {targets})",
    "also-for-targets": " (also for {targets})",
    "with-settings": " (with {settings})",
    "in-programs": " (in {noun} {programs})",
    "in-programs-not-latest": " (in {noun} {programs}, but not in the latest, {latest})",
    "evidence-for-target": "for {target}: {evidence}",
    "evidence-with-setting": "with {setting}: {evidence}",
    "not-found-for-target": "not found in the programs compiled for {target}",
    "fix-with-imports": "{fix}. Also write at the top of the file: {imports}",
    "parts": "{parts}",
}
