"""The session pipeline of one cluster: lease, settle, snapshot, decide, write then send, record."""
