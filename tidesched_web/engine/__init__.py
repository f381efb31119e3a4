"""The bridge to the engine: the only package of the host that imports ``scheduler_core``. It asks no database."""
