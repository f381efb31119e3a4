"""``lint``: what a policy or a workload says that is allowed and yet is not what its author means."""

import argparse
import json
import sys

from scheduler_core.cli.files import read_bytes, shown
from scheduler_core.serde.lint import Finding, lint_policy, lint_workloads

NOTHING, FINDINGS = 0, 1


def main(options: argparse.Namespace) -> int:
    """Print the findings; exit status 1 where there are some."""
    if options.conf:
        findings = lint_policy(read_bytes(options.conf), shown(options.conf))
    else:
        findings = lint_workloads(read_bytes(options.workload), shown(options.workload))
    if (options.output or ("table" if sys.stdout.isatty() else "json")) == "json":
        print(json.dumps([finding.to_json() for finding in findings], ensure_ascii=False, indent=1, sort_keys=True))
    else:
        _print(findings)
    return FINDINGS if findings else NOTHING


def _print(findings: list[Finding]) -> None:
    for finding in findings:
        place = f"{finding.object}: {finding.path}" if finding.path else finding.object
        print(f"{finding.severity.value:8}{place}: {finding.message} [{finding.code}]")
        if finding.fix:
            print(f"        fix: {finding.fix}")
    if not findings:
        print("nothing found")
