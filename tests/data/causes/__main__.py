"""``python -m causes OUT.json``: record the quick cases in this process and write what was said of each."""

import json
import sys
import tempfile
from pathlib import Path

from . import CASES
from .judge import judge, wanted
from .recorded import file_of, record


def main() -> None:
    cases = [c for c in CASES if not c.slow]
    with tempfile.TemporaryDirectory() as directory:
        recorded = record(cases, Path(directory) / "run")
    said = {
        c.name: {
            "true": wanted(c),
            "control": not c.causes,
            "error": recorded[c.name].error,
            "built": all(one["causes"] is not None for one in recorded[c.name].compilations),
            "compilations": len(recorded[c.name].compilations),
            **judge(c, recorded[c.name].compilations, file_of(c))._asdict(),
        }
        for c in cases
    }
    Path(sys.argv[1]).write_text(json.dumps(said))


if __name__ == "__main__":
    main()
