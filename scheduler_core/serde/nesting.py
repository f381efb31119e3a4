"""The shape of a YAML text, looked at before anything is built of it.

The parser goes through a text without recursion, but what builds values of its events recurses on the stack of C: a
hundred kilobytes of ``[`` end the process. Aliases let a short text stand for more values than any memory holds.
"""

from __future__ import annotations

import yaml

MOST_DEEP = 100
# Values that aliases may repeat in one document.
MOST_REPEATED = 200_000


def check_shape(text: str) -> None:
    """Refuse a text that nests too deep, repeats too much, or holds itself.

    Raises:
        yaml.YAMLError: with the place; also where the text is no YAML.
    """
    sizes: dict[str, int] = {}
    opened: list[str | None] = []
    counts = [0]
    repeated = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.ScalarEvent):
            counts[-1] += 1
            if event.anchor:
                sizes[event.anchor] = 1
        elif isinstance(event, yaml.CollectionStartEvent):
            opened.append(event.anchor)
            counts.append(1)
            if len(opened) > MOST_DEEP:
                raise _refused(f"values stand more than {MOST_DEEP} deep in each other", event)
            if event.anchor:
                sizes.pop(event.anchor, None)
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, count = opened.pop(), counts.pop()
            counts[-1] += count
            if anchor:
                sizes[anchor] = count
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor in opened:
                raise _refused(f"*{event.anchor} holds itself", event)
            size = sizes.get(event.anchor or "", 1)
            counts[-1] += size
            repeated += size
            if repeated > MOST_REPEATED:
                raise _refused(f"aliases repeat more than {MOST_REPEATED} values", event)
        elif isinstance(event, yaml.DocumentStartEvent):
            sizes.clear()
            repeated = 0


def _refused(problem: str, event: yaml.Event) -> yaml.YAMLError:
    mark = event.start_mark
    return yaml.composer.ComposerError(None, None, problem, mark)  # type: ignore[arg-type]  # also the C parser's
