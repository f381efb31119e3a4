"""Every plugin, action and command has its test: at least one test says its name. Addresses: `tests/matrix`."""

import re
from functools import cache

from django.core.management import get_commands

from tests.architecture import sources


@cache
def said() -> str:
    """The text of all tests but those of this folder."""
    here = sources.ROOT / "tests" / "architecture"
    files = [path for path in sources.committed() if path.is_relative_to(sources.ROOT / "tests")]
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in files if not path.is_relative_to(here)]
    return "\n".join(texts)


def modules(package: str) -> set[str]:
    """The public modules of a package, as a policy names them."""
    folder = sources.ROOT / package
    return {path.stem.replace("_", "-") for path in folder.glob("*.py") if not path.stem.startswith("_")}


def unsaid(names: set[str]) -> set[str]:
    return {name for name in names if not re.search(rf"\b{re.escape(name)}\b", said())}


def test_every_action_has_a_test() -> None:
    assert unsaid(modules("scheduler_core/actions")) == set()


def test_every_plugin_has_a_test() -> None:
    assert unsaid(modules("scheduler_core/plugins")) == set()


def test_every_command_has_a_test() -> None:
    own = {name for name, app in get_commands().items() if str(app).startswith("tidesched_web.")}
    assert unsaid(own) == set()
