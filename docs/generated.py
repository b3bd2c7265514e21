"""Write the pages that are made from the code: one per rule, the reference of the configuration, the errors.

They go to ``rules/`` and ``reference/`` below the site's sources. Git ignores them.
"""

import argparse
import ast
import json
import sys
from pathlib import Path

FAMILIES = {
    "JX1": "Recompiles, and values that are wrong without an error",
    "JX2": "The shape of the program",
    "JX3": "Types and callbacks",
    "JX4": "Communication",
    "JX5": "Memory and placement",
    "JX6": "Transfers and waiting",
    "JX7": "Differences from a baseline",
    "JX8": "Targets, and the processes of a job",
    "JX9": "The check itself",
}
HEADINGS = {"## ": "## ", "### ": "### "}


def write(source: Path) -> None:
    """Write all generated pages below ``source``, the directory of ``conf.py``."""
    from jaxscope.report import brief, contract, scalars, show, trial

    _rules(source / "rules")
    _configuration(source / "reference")
    _messages(source / "reference")
    documents = {"report": contract, "brief": brief, "show": show, "try": trial, "metrics": scalars}
    for name, module in documents.items():
        text = json.dumps(module.schema(), indent=1) + "\n"
        _put(source / "reference" / f"{name}.schema.json", text)


def _put(path: Path, text: str) -> None:
    """Write only what changed: Sphinx reads a page again when its time changes."""
    path.parent.mkdir(exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def _rules(folder: Path) -> None:
    from jaxscope.rules import registry

    rules = registry.rules()
    index = [
        "# Rules",
        "",
        "Every finding has a code. Each page says what the rule looks for and why it matters. Most pages"
        " show a program that has the problem and one that does not; a test runs both on the oldest and the"
        " newest JAX that CI uses.",
        "`jaxscope rule JX101` prints the same page in a terminal.",
        "",
    ]
    for prefix, title in FAMILIES.items():
        family = [r for code, r in rules.items() if code.startswith(prefix)]
        if not family:
            continue
        index += [f"## {title}", "", "| code | name | severity | finds |", "|---|---|---|---|"]
        for r in family:
            summary = r.summary.replace("|", "\\|")
            index.append(f"| [{r.code}]({r.code}.md) | {r.name} | {r.severity} | {summary} |")
        index.append("")
    toctree = ["```{toctree}", ":hidden:", "", *rules, "```", ""]
    _put(folder / "index.md", "\n".join(index + toctree))
    for r in rules.values():
        _put(folder / f"{r.code}.md", f"# {r.code} {r.name}\n\nSeverity: {r.severity}\n\n{r.doc}\n")
    for old in folder.glob("JX*.md"):
        if old.stem not in rules:
            old.unlink()


def _configuration(folder: Path) -> None:
    from jaxscope.cli import Parser, check, config, options

    parsers = Parser(prog="jaxscope").add_subparsers(parser_class=Parser)
    check.add_parser(parsers)
    helps = {"run": _help(options.parser()), "check": _help(parsers.choices["check"])}
    page = [
        "# Configuration",
        "",
        "An option is looked up on the command line, then in the environment, then in the nearest"
        " `pyproject.toml` at or above the current directory. The first of these places that sets the option"
        " counts. In `pyproject.toml` the keys are the long options.",
        "",
        "```toml",
        "[tool.jaxscope]",
        'wrapper-libraries = ["mylib"]   # packages whose lines are not yours',
        "",
        "[tool.jaxscope.run]",
        'step-function = "train_step"',
        "",
        "[tool.jaxscope.check]",
        "no-recompiles-after = 1",
        "",
        "[tool.jaxscope.keys]            # keys of the terminal interface, by the name of the action",
        'find = "ctrl+f,/"',
        "```",
        "",
    ]
    for table, known in config.OPTIONS.items():
        if table == "keys" or not known:
            continue
        page += [f"## [tool.jaxscope{'.' + table if table else ''}]", ""]
        page += ["| key | environment | value | meaning |", "|---|---|---|---|"]
        for key, option in known.items():
            value = ", ".join(option.choices) or {
                str: "text", bool: "true or false", int: "a whole number", list: "a list of texts",
                dict: "a table",
            }.get(option.type) or _limit(key)  # fmt: skip
            meaning = helps.get(table, {}).get(key, LIMITS.get(key, "")).replace("|", "\\|")
            variable = "" if option.type is dict else f"`{config.variable_of(key)}`"
            page.append(f"| `{key}` | {variable} | {value} | {meaning} |")
        page.append("")
    _put(folder / "configuration.md", "\n".join(page))


def _limit(key: str) -> str:
    """Return what the limit ``key`` takes."""
    number = 'bytes, or a text such as `"64 MiB"`' if key.endswith("-bytes") else "a number"
    return number + (", or a table" if key.startswith("max-collective") else "")


LIMITS = {
    "max-compilations": "compilations of your functions; eager operations are not counted",
    "max-compile-seconds": "seconds of tracing, lowering and compiling",
    "max-collectives": "collectives of one program; a table has limits by kind, `kind@axis` or `*@axis`",
    "max-collective-bytes": "bytes of the results of a program's collectives, on one device in one call,"
    " counting the iterations of loops; a table as above",
    "max-temp-bytes": "bytes of temporaries of one program on one device",
    "max-peak-bytes": "peak memory of one program on one device",
    "max-replicated-bytes": "bytes, on one device, of the arguments of one program that another device also"
    " has",
    "max-constant-bytes": "bytes of captured constants of one program",
    "wrapper-libraries": "packages whose lines are not yours: a call is attributed to the line that"
    " called into them",
    "per-file-ignores": 'codes that are left out for some files: `{"data/*.py" = ["JX101"]}`',
    "functions": 'limits for functions by pattern: `[tool.jaxscope.check.functions."train_*"]`',
    "targets": 'limits for targets by pattern: `[tool.jaxscope.check.targets."v5p:*"]`',
}


def _messages(folder: Path) -> None:
    """Every error by its slug, as the calls that raise it write it."""
    found: dict[str, set[tuple[str, str]]] = {}
    package = Path(__file__).parents[1] / "jaxscope"
    for path in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            words = {k.arg: k.value for k in node.keywords} if isinstance(node, ast.Call) else {}
            slug = words.get("slug")
            if isinstance(node, ast.Call) and node.args and isinstance(slug, ast.Constant):
                hint = words.get("hint")
                found.setdefault(slug.value, set()).add((_words(node.args[0]), _words(hint) if hint else ""))
    page = [
        "# Errors",
        "",
        "Every error that jaxscope reports, by its slug. The slug is printed in brackets after the error; in"
        " code it is `JaxscopeError.slug`. Below each slug are its messages, each with its hint in italics."
        " `…` stands for a name or a figure, or for words that depend on the case.",
        "",
    ]
    for slug in sorted(found):
        page += [f"## {slug}", ""]
        written = [(m, hint) for m, hint in sorted(found[slug]) if any(map(str.isalpha, m))]
        page += [] if written else ["The message depends on the case.", ""]
        for message, hint in written:
            page.append(f"- {message}" + (f"\\\n  *{hint}*" if any(map(str.isalpha, hint)) else ""))
        page.append("")
    _put(folder / "messages.md", "\n".join(page))


def _words(node: ast.expr) -> str:
    """The text of an expression, with ``…`` for what is filled in, escaped for Markdown."""
    if isinstance(node, ast.Constant):
        text = str(node.value)
    elif isinstance(node, ast.JoinedStr):
        text = "".join(str(v.value) if isinstance(v, ast.Constant) else "…" for v in node.values)
    else:
        text = "…"
    return "".join(f"\\{c}" if c in "\\`*_{}[]<>#|" else c for c in text)


def _help(parser: argparse.ArgumentParser) -> dict[str, str]:
    """The help of each long option of ``parser``, as the command line prints it."""
    found = {}
    for action in parser._actions:
        for name in action.option_strings:
            if name.startswith("--") and action.help and action.help is not argparse.SUPPRESS:
                found[name.removeprefix("--")] = (action.help % {"prog": parser.prog}).strip()
    return found


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
