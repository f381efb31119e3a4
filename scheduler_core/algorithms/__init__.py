"""Pure functions over arrays and values; none of them knows a session."""
