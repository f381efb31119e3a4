from typing import Any

from scheduler_core.serde.result import reason_to_json
from tidesched_web.engine.model import Reason


def numbers_of(reason: Reason) -> dict[str, Any]:
    numbers: dict[str, Any] = reason_to_json(reason)["numbers"]
    return numbers
