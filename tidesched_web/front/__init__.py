"""What stands before Django in the web process: probes, limits on bodies, and turns that are shared fairly."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

# The three things of ASGI.
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]

# What a middleware of Django writes into the scope: the account that the request turned out to be of,
ACCOUNT = "tidesched.account"
# and how its answer is made: "whole" (where nothing is said), "events" or "download".
KIND = "tidesched.answer"
