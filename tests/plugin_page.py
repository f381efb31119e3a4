"""The reference page of actions and plugins, written from their declarations: ``docs/plugins.md``. ``python -m
tests.plugin_page`` prints it; ``make docs`` writes it, ``make check`` compares it."""

import inspect
import re
import sys
from collections.abc import Iterable, Mapping

from scheduler_core.actions import ACTIONS
from scheduler_core.framework.extension_points import (
    EXTENSION_POINTS,
    POINTS,
    SWITCHES,
    ExtensionPoint,
    ExtensionPoints,
    points_of,
)
from scheduler_core.framework.plugin import Action, Argument, Plugin
from scheduler_core.framework.registry import NOT_BUILT
from scheduler_core.plugins import PLUGINS

_INTRODUCTION = """\
# Actions and plugins

What a policy file (`volcano-scheduler.conf`) may name. This page is written by `make docs` from the declarations
in the code; `make check` compares it. How a file is read and what its errors mean: [cli.md](cli.md). Actions and
plugins of your own: [own-plugins.md](own-plugins.md).

Every plugin may be switched off point by point; the switches are written beside the plugin's name in the file:

```yaml
actions: "enqueue, allocate, backfill, reclaim"
tiers:
- plugins:
  - name: gang
    enableReclaimable: false
  - name: nodeorder
    arguments:
      leastrequested.weight: 2
configurations:
- name: reclaim
  arguments:
    reservationSeconds: 300
```
"""


_POINTS_INTRODUCTION = """\
## Extension points

A plugin takes part at a point by having a method of its name. What the plugins of a policy answer is combined:

| | |
|---|---|
| key | sort keys, one plugin after the other |
| vote | one that rejects refuses; a tier in which one permits ends the vote |
| all | the first answer that is not None refuses (for a yes or no: all say yes) |
| any | one that says yes is enough |
| first tier all | the first tier with a plugin that has a say decides, all of it together |
| victims | inside a tier all must allow a victim; the first tier with an opinion decides |
| union | what any plugin of a tier names; the first tier that names any decides |
| masks | a node must be in all masks |
| sum | scores are added |
| call all | everyone is told, or asked in turn |
| first | the first plugin that has the method answers |

| point | answer | combined | says |
|---|---|---|---|"""


def page() -> str:
    """The whole page; the same bytes for the same code."""
    parts = [_INTRODUCTION, "## Actions\n", *(_section(name, ACTIONS[name], ()) for name in sorted(ACTIONS))]
    parts.append("## Plugins\n")
    parts += [_section(name, PLUGINS[name], _points(PLUGINS[name])) for name in sorted(PLUGINS)]
    parts.append(_POINTS_INTRODUCTION)
    parts += [_point(point) for point in EXTENSION_POINTS]
    parts.append("")
    unbuilt = sorted(NOT_BUILT - PLUGINS.keys())
    if unbuilt:
        names = ", ".join(f"`{name}`" for name in unbuilt)
        parts.append(
            "## Known, not built\n\n"
            f"{names}: names of upstream that mean something and do nothing here. A policy that has one is refused; "
            "with `compatibility: volcano` it is accepted with a warning.\n"
        )
    return "\n".join(parts)


def _section(name: str, kind: type[Plugin] | type[Action], points: Iterable[str]) -> str:
    module = inspect.getmodule(kind)
    text = inspect.cleandoc((module.__doc__ if module is not None else "") or "")
    lines = [f"### {name}\n", _plain(text), ""]
    answered = list(points)
    if answered:
        switches = {switch: key for key, (switch, _) in SWITCHES.items()}
        shown = [f"`{point}`" + _switch(switches, point) for point in answered]
        lines += [f"Registers: {', '.join(shown)}.", ""]
    if kind.arguments:
        lines += ["| argument | type | default | says |", "|---|---|---|---|"]
        lines += [_row(argument) for argument in kind.arguments]
        lines.append("")
    if isinstance(kind, type) and issubclass(kind, Plugin) and kind.not_built:
        lines += [f"Known, not built yet: {', '.join(f'`{argument}`' for argument in sorted(kind.not_built))}.", ""]
    return "\n".join(lines)


def _point(point: ExtensionPoint) -> str:
    method = vars(ExtensionPoints)[point.name]
    given = inspect.signature(method)
    taken = ", ".join(str(one).replace("'", "") for one in list(given.parameters.values())[1:])
    answer = str(given.return_annotation).replace("|", r"\|")
    says = " ".join(inspect.cleandoc(method.__doc__).split()).replace("|", r"\|").replace("``", "`")
    return f"| `{point.name}({taken})` | `{answer}` | {point.combine.replace('_', ' ')} | {says} |"


def _points(kind: type[Plugin]) -> list[str]:
    return [point.name for point in points_of(kind)]


def _switch(switches: Mapping[str, str], point: str) -> str:
    key = switches.get(POINTS[point].switch, "")
    return f" (`{key}`)" if key else ""


def _row(argument: Argument) -> str:
    names = ", ".join(f"`{name}`" for name in (argument.name, *argument.aliases))
    limits = []
    if argument.minimum is not None or argument.maximum is not None:
        low = "" if argument.minimum is None else f"{argument.minimum:.12g}"
        high = "" if argument.maximum is None else f"{argument.maximum:.12g}"
        limits.append(f"{low} to {high}" if low and high else f"at least {low}" if low else f"at most {high}")
    if argument.choices:
        limits.append(" or ".join(f"`{choice}`" for choice in argument.choices))
    kind = argument.type + (f", {', '.join(limits)}" if limits else "")
    return f"| {names} | {kind} | {_value(argument.default)} | {argument.doc.replace('|', chr(92) + '|')} |"


def _value(default: object) -> str:
    if default in (None, "", (), [], {}):
        return "none"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if isinstance(default, float):
        return f"`{default:g}`"
    return f"`{default}`"


# What a reader of the page cannot follow, or sees below anyhow.
_LEFT_OUT = re.compile(
    r"^Extension points?:.*?(?:\.(?=\s)|\Z)|Source: .*?(?:\.(?=\s)|\Z)"
    r"|\s*\((?:contracts|semantics|volcano-semantics|pitfalls?|traps|design|document)\b[^)]*\)",
    re.DOTALL | re.MULTILINE,
)


def _plain(text: str) -> str:
    """The docstring as Markdown: ``code`` becomes `code`, roles become names, references to sources go."""
    text = re.sub(r"\n{3,}", "\n\n", re.sub(r"(?m)^ ", "", _LEFT_OUT.sub("", text))).strip()
    for role in (":mod:", ":class:", ":func:", ":attr:", ":meth:"):
        text = text.replace(role, "")
    return text.replace("``", "`")


if __name__ == "__main__":
    sys.stdout.write(page().rstrip("\n") + "\n")
