"""Findings as commands print them: in the headless contract's names, and as lines for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from spectui.core.findings import Finding


def finding_to_json(finding: Finding) -> dict[str, Any]:
    """One finding in the headless contract's names."""
    return {
        "code": finding.code,
        "message": finding.message,
        "advice": finding.advice,
        "evidence": dict(finding.evidence),
    }


def finding_lines(findings: Iterable[Mapping[str, Any]]) -> list[str]:
    """One line for each finding of `finding_to_json`."""
    return [f"{f['code']}: {f['message']}" + (f"; {f['advice']}" if f["advice"] else "") for f in findings]
