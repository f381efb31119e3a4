"""Immutable values that go into and come out of a session. All of them are structs with ``gc=False``: they hold no
cycles, and a cluster is hundreds of thousands of them, which the cyclic collector would walk again and again."""
