"""The one exception of a start that cannot go on."""


class StartError(Exception):
    """What is wrong and what to do about it; printed as two lines, without a traceback."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
