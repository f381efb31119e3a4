"""The password of every account of the tests."""

PASSWORD = "a long enough password"
