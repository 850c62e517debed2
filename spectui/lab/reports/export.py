"""A profile, or what a sweep recommends, for other programs: a script, a router's preset, llama-swap, or numbers.

Only what the binary accepts is written, and never a secret. The formats are those that the programs read: INI as
llama-server's router takes it (no quoting; `;` and `#` begin a comment), YAML as llama-swap takes it.
"""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from spectui.core.profile import TuningProfile
from spectui.core.secrets import without_secrets
from spectui.core.sweep.grid import name_of
from spectui.core.text import one_line
from spectui.errors import StoreError, UsageError
from spectui.lab.experiments.sweep_record import Found, changed_file, found_of, recommendations, without_swept
from spectui.lab.reports.sweep import label_of, sentence, sweep_table, sweep_to_json
from spectui.lab.servers.launcher import HOST, Launcher
from spectui.llama.binary.argv import build_argv
from spectui.llama.binary.capabilities import Capabilities
from spectui.store.atomic import write_text
from spectui.store.results import ResultStore

_PORT: Final = 8080
"""llama-server's own default."""
_BAR: Final = 40
"""Characters of a bar in the plots."""
_LARGEST_SPEEDUP: Final = 4.0
_OF_A_SERVER: Final = ("--host", "--port")


def kept_sweep(store: ResultStore, number: int) -> Found:
    """A sweep by its number. Raises StoreError."""
    return found_of(store.sweep(number))


def newest_sweep(store: ResultStore, profile: TuningProfile) -> Found | None:
    """The newest sweep of this very model and draft; None where there is none. Raises StoreError."""
    for sweep in store.sweeps():
        try:
            found = found_of(sweep)
        except StoreError:
            continue
        swept, asked = without_swept(found.order.profile), without_swept(profile)
        if (swept.server.model, swept.speculation) == (asked.server.model, asked.speculation):
            return found
    return None


async def export(kind: str, *, profile: TuningProfile | None, found: Found | None, launcher: Launcher) -> str:
    """The text of one format: of a profile as it is, or of a sweep where no profile is given.

    Numbers of a profile are those of its newest sweep, `found`. Raises UsageError, FlagError, BinaryError.
    """
    if kind in _NUMBERS:
        if found is None:
            raise UsageError(
                f"nothing was swept with this profile yet: spectui sweep it, then export as {kind}"
            )
        return _NUMBERS[kind](sweep_to_json(found))
    if profile is not None:
        entries = {profile.traffic.workload: profile}
    elif found is not None:
        entries = recommended_profiles(found)
    else:
        raise UsageError("name a profile or a sweep")
    if not entries:
        raise UsageError("this sweep recommends nothing yet: no setting was tried; resume it")
    lines: dict[str, tuple[str, ...]] = {}
    for name, entry in entries.items():
        if entry.attached:
            raise UsageError(
                "this profile attaches to a server of somebody else: there is no command to export"
            )
        binary = await launcher.binary(entry)
        caps = await launcher.capabilities(binary)
        argv = build_argv(
            entry, caps, binary=str(binary), port=entry.server.port or _PORT, host=HOST, reports=False
        )
        lines[name] = without_secrets(argv)
    if kind == "preset":
        return preset(lines, caps)
    first = next(iter(entries.values()))
    return shell(lines, key=first.server.api_key_env) if kind == "shell" else llama_swap(lines)


def changed_since(kind: str, *, profile: TuningProfile | None, found: Found | None) -> str | None:
    """A file that is another one now than when what is exported was measured; None for settings as they are."""
    measured = profile is None or kind in _NUMBERS
    return changed_file(found.order) if measured and found is not None else None


def recommended_profiles(found: Found) -> dict[str, TuningProfile]:
    """What a sweep recommends, by workload; conditions that nothing was tried under are left out."""
    grid = found.order.grid
    return {
        name_of(condition, grid): best.setting.applied_to(
            found.order.profile.with_sampling(temperature=condition.temperature).with_traffic(
                workload=condition.workload
            )
        )
        for condition, best in recommendations(found, found.outcomes).items()
        if best is not None
    }


def shell(lines: Mapping[str, Sequence[str]], *, key: str | None = None) -> str:
    """A script with the exact command line, chosen by its first argument where there are several.

    key: variable that holds the server's API key.
    """
    names = [one_line(name) for name in lines]
    out = ["#!/bin/sh", "# llama-server, as tuned by spectui"]
    out += [f"# usage: give one of {', '.join(names)}; {names[0]} without"] if len(names) > 1 else []
    out.append("set -eu")
    if key is not None:
        out += [f': "${{{key}:?holds the API key}}"', f'export LLAMA_API_KEY="${key}"']
    if len(lines) == 1:
        return "\n".join([*out, f"exec {shlex.join(next(iter(lines.values())))}", ""])
    out.append(f'case "${{1:-{names[0]}}}" in')
    out += [
        f"  {shlex.quote(name)}) exec {shlex.join(argv)} ;;"
        for name, argv in zip(names, lines.values(), strict=True)
    ]
    out += ['  *) echo "unknown workload: $1" >&2; exit 2 ;;', "esac", ""]
    return "\n".join(out)


def preset(lines: Mapping[str, Sequence[str]], caps: Capabilities) -> str:
    """A file for `llama-server --models-preset`, one entry per workload. Raises UsageError."""
    out = ["; for llama-server --models-preset, as tuned by spectui", "version = 1"]
    for name, argv in lines.items():
        out += ["", f"[{_ini(name, 'the workload')}]"]
        out += [f"{option} = {value}" for option, value in _options(argv[1:], caps)]
    return "\n".join([*out, ""])


def llama_swap(lines: Mapping[str, Sequence[str]]) -> str:
    """A configuration for llama-swap, one model per workload. Raises UsageError."""
    out = ["# for llama-swap, as tuned by spectui", "models:"]
    for name, argv in lines.items():
        if any("${" in word for word in argv):
            raise UsageError("a path holds ${, which llama-swap takes for a macro: rename the file")
        words = [*_without_place(argv), "--port"]
        command = f"{shlex.join(words)} ${{PORT}}"
        out += [f"  {_yaml(name)}:", f"    cmd: {_yaml(command)}"]
    return "\n".join([*out, ""])


def write(path: str, text: str, *, executable: bool) -> None:
    """Write an exported file in one step. Raises UsageError."""
    target = Path(path).expanduser()
    try:
        write_text(target, text, mode=0o777 if executable else 0o666)
    except OSError as error:
        raise UsageError(f"{one_line(path, 200)}: cannot be written: {error.strerror}") from error


def _options(words: Sequence[str], caps: Capabilities) -> list[tuple[str, str]]:
    """Arguments as a preset's lines; where the server listens is the router's business."""
    options: list[tuple[str, str]] = []
    rest = iter(_without_place(words))
    for word in rest:
        name, equals, value = word.partition("=")
        flag = caps.flag(name)
        if flag is None:
            raise UsageError(
                f"{one_line(word, 80)} cannot stand in a preset: this llama-server has no such flag"
            )
        if len(flag.hint.split()) > 1:
            raise UsageError(f"{name} takes two values, which no preset can hold")
        text = (value if equals else next(rest, "")) if flag.hint else "true"
        options.append((name.lstrip("-").replace("_", "-"), _ini(text, name)))
    return options


def _without_place(words: Sequence[str]) -> list[str]:
    """The arguments without host and port."""
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        if word in _OF_A_SERVER:
            next(rest, None)
        elif word.partition("=")[0] not in _OF_A_SERVER:
            kept.append(word)
    return kept


def _ini(text: str, what: str) -> str:
    """A value as a preset reads it back."""
    if text != text.strip() or any(sign in text for sign in ";#\n\r]"):
        raise UsageError(
            f"{what}: a preset cannot hold {one_line(text, 80)!r}: it has ; # ] or a space at an end; rename it"
        )
    return text


def _yaml(text: str) -> str:
    """A double-quoted scalar: JSON strings are YAML."""
    return json.dumps(text, ensure_ascii=False)


def _csv(data: dict[str, Any]) -> str:
    out = io.StringIO()
    rows = data["cells"]
    writer = csv.DictWriter(out, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({n: one_line(v) if isinstance(v, str) else v for n, v in row.items()})
    return out.getvalue()


def _json(data: dict[str, Any]) -> str:
    return f"{json.dumps(data, ensure_ascii=False, allow_nan=False)}\n"


def _markdown(data: dict[str, Any]) -> str:
    """The recommendation, the heat maps and each workload's curve as text."""
    lines = ["# Sweep by spectui", ""]
    lines += [f"- {sentence(name, best)}" for name, best in data["recommendation"].items()]
    for base in data["baselines"]:
        part = [c for c in data["cells"] if all(c[n] == base[n] for n in ("workload", "temperature"))]
        plots = _plot(part)
        if plots:
            title = f"## {one_line(base['workload'])}, temperature {base['temperature']:g}"
            lines += ["", title, "", "```text", *plots, "```"]
    lines += ["", "## All cells", "", "```text", sweep_table(data), "```", ""]
    return "\n".join(lines)


def _plot(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """Speedups as bars, the fastest first; `|` is the speed without speculation."""
    known = [
        (value, cell)
        for cell in cells
        if (value := cell["speedup_actual"] if cell["measured"] else cell["speedup_predicted"]) is not None
    ]
    known.sort(key=lambda each: -each[0])
    if not known:
        return []
    scale = _BAR / max(_LARGEST_SPEEDUP / 2, min(_LARGEST_SPEEDUP, known[0][0]))
    even = round(scale)
    made = []
    for value, cell in known:
        bar = ("#" if cell["measured"] else ".") * min(_BAR, round(value * scale))
        bar = bar.ljust(even)
        made.append((label_of(cell), f"{bar[:even]}|{bar[even:]}", f"{value:.2f}x"))
    width = max(len(name) for name, _, _ in made)
    return [f"{name:<{width}} {bar:<{_BAR + 1}} {text}" for name, bar, text in made]


_NUMBERS: Final = {"csv": _csv, "json": _json, "markdown": _markdown}
