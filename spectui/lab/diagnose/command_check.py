"""`spectui check`: a pasted command line against a binary or a saved help text, with no server started."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from spectui.core.text import one_line
from spectui.core.verdict.findings import Failure, Finding, launch_finding
from spectui.errors import BinaryError, UsageError
from spectui.lab.diagnose.user_files import require_regular
from spectui.lab.reports.contract_measure import CheckJson
from spectui.lab.reports.contract_types import contract_values
from spectui.lab.reports.text import finding_lines
from spectui.lab.run_to_end import run_to_end
from spectui.llama.binary.capabilities import ALIASES, Capabilities, normalise, parse_help
from spectui.llama.binary.command_check import Checked, check_command
from spectui.llama.binary.find import BinaryProbe, find_binary
from spectui.llama.binary.pasted_command import given_options, split_command

_TARGET_FILE = frozenset({"-m", "--model"})


def check(
    text: str, *, server: str | None, help_text: str | None, environ: Mapping[str, str]
) -> tuple[Checked, bool]:
    """Check a pasted command, and whether nothing is wrong with it.

    Model files are looked at only for a named server, whose machine this is. Raises UsageError for a command or
    help text that cannot be read, BinaryError where there is no binary to ask.
    """
    if server is not None and help_text is not None:
        raise UsageError("give --server or --help-text, not both")
    command = split_command(text)
    if help_text is not None:
        caps, binary = _saved_help(help_text), None
    else:
        binary = _binary(server, environ)
        caps = run_to_end(BinaryProbe().capabilities(binary))
    checked = check_command(command, caps, environ, binary=str(binary) if server else None)
    if server is not None:
        missing = missing_files(command.arguments, caps)
        if missing:
            checked = replace(checked, findings=(*checked.findings, *missing), words=None)
    return checked, not checked.findings


def check_to_json(checked: Checked, *, ok: bool) -> dict[str, Any]:
    """The object of `check --json`; argv is null where the line cannot be corrected without asking."""
    return contract_values(CheckJson, checked, ok=ok, argv=checked.words)


def check_table(data: dict[str, Any]) -> str:
    """The same for people."""
    lines = finding_lines(data["findings"])
    if data["ok"]:
        return "the binary takes this command line"
    if data["argv"] is not None:
        lines.append(f"corrected: {one_line(shlex.join(data['argv']))}")
    return "\n".join(lines)


def _binary(server: str | None, environ: Mapping[str, str]) -> Path:
    try:
        return find_binary(server, environ)
    except BinaryError as error:
        if server is None:
            raise
        raise BinaryError(f"--server {server}: there is no such llama-server, correct the path") from error


def _saved_help(path: str) -> Capabilities:
    try:
        caps = parse_help(require_regular(path).read_text("utf-8", errors="replace"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    if not caps.accepts("--model"):
        raise UsageError(f"{path} is no help text of a llama-server: save the output of llama-server --help")
    return caps


def missing_files(arguments: tuple[str, ...], caps: Capabilities) -> list[Finding]:
    """Model files that the arguments name and that are not there."""
    findings = []
    for option in given_options(arguments, caps):
        flag = normalise(option.flag)
        role = "target" if flag in _TARGET_FILE else "draft" if flag in ALIASES[0] else None
        if role is None or not option.values or Path(option.values[0]).expanduser().is_file():
            continue
        findings.append(missing_file(role, option.values[0]))
    return findings


def missing_file(role: str, path: str) -> Finding:
    """The finding for a model that is not there; role is target or draft."""
    code = "model-missing" if role == "target" else "draft-model-missing"
    text = f"there is no {role} model {one_line(path, 200)}"
    return launch_finding(Failure(code=code, text=text), "correct the path of the file")
