"""Where Django looks first for how a language writes numbers (``FORMAT_MODULE_PATH``)."""
