"""How the engine asks a service outside: through a client that the host lends, since it opens no connection itself."""

from typing import Protocol


class ExtenderError(Exception):
    """The service did not answer, or not with what was asked for; the text says what happened."""


class ExtenderClient(Protocol):
    """What a host implements, see ``tidesched_web.engine.extender_client`` for one over HTTP."""

    def post(self, url: str, body: bytes, timeout: float) -> bytes:
        """Send JSON and return the JSON of a successful answer, within so many seconds. Raises ExtenderError: whatever
        goes wrong."""
        ...
