from collections.abc import Callable

from numba.core import event


class _Heard(event.Listener):
    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call

    def on_start(self, event: event.Event) -> None:
        self._call()

    def on_end(self, event: event.Event) -> None:
        self._call()


def on_compile(call: Callable[[], None]) -> None:
    """Call it at the beginning and at the end of each function that is compiled, in the thread that compiles."""
    event.register("numba:compile", _Heard(call))
