"""`spectui doctor`: everything that is wrong with a profile before its server starts, or with a server that runs.

The profile, its files and the machine are looked at together, or a running server's own answers. Nothing is
started but short questions to the binary, and nothing is generated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from spectui.core.bet.estimates import BetReading
from spectui.core.bet.segment import draft_length_of
from spectui.core.profile import OFF, TuningProfile, asks_for_gpu, is_ngram, needs_draft_model, used_draft
from spectui.core.secrets import redacted
from spectui.core.text import one_line
from spectui.core.verdict.findings import Failure, Finding, Group, launch_finding
from spectui.core.verdict.verdict import Facts, judge
from spectui.errors import BinaryError, FlagError, LaunchError, ServerError, SpectuiError
from spectui.lab.diagnose.command_check import missing_file, missing_files
from spectui.lab.measuring.verdicts import verdict_of
from spectui.lab.reports.contract_measure import DoctorJson
from spectui.lab.reports.contract_types import contract_values
from spectui.lab.reports.text import finding_lines
from spectui.lab.servers.discovery import LocalServer, local_server
from spectui.lab.servers.launcher import HOST, Launcher, missing_models, names_devices, unknown_devices
from spectui.lab.servers.machine import MachineMonitor
from spectui.lab.servers.model_check import PAIRED_MODE, file_of, read_models, read_pair, too_large
from spectui.lab.servers.server import AttachedServer, failure_of
from spectui.lab.workloads.workloads import load_workload
from spectui.llama.binary.argv import assemble, child_environment, unnamed_draft, unnamed_target
from spectui.llama.binary.capabilities import ALIASES, Capabilities
from spectui.llama.binary.command_check import bad_builds, check_command
from spectui.llama.binary.find import BinaryProbe, Device, list_devices
from spectui.llama.binary.pasted_command import CommandLine
from spectui.llama.builds import TWO_PASSES
from spectui.llama.http.client import Health
from spectui.llama.http.metrics import ServerCounters, parse_metrics
from spectui.llama.process.ready import require_free_port

_UNHEALTHY: Final = frozenset({Group.CANNOT_START, Group.NOT_SPECULATING, Group.FAILING})
_CONCERNS: Final = _UNHEALTHY | {Group.TO_KNOW}
"""Groups that a look can judge; the bet itself takes a measurement."""
_SILENT: Final = frozenset({"draft-type-missing", "vocab-mismatch"})
"""Causes for which a server that runs does not speculate."""
_LONGEST: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What was looked at; None is unknown, or does not apply."""

    url: str | None = None
    """Address of a running server; None before a launch."""
    binary: str | None = None
    build: str | None = None
    model: str | None = None
    """Name of the target."""
    draft: str | None = None
    mode: str | None = None
    draft_length: int | None = None
    """k; for n-gram modes the longest draft of the lookup."""
    speculating: bool | None = None
    """What `/slots` says."""
    acceptance_ratio: float | None = None
    """By the server's counters, over all its requests that ended."""
    command_checked: bool = False
    """Whether the command line was there to be checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What was looked at and what is wrong with it, ranked by group."""

    examined: Examined
    findings: tuple[Finding, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing keeps the server from starting, speculating or answering."""
        return not any(f.group in _UNHEALTHY for f in self.findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What an examination takes besides the profile."""

    environ: Mapping[str, str]
    cache: Path | None
    """Folder where facts of model files are kept."""
    api_key: str | None = field(default=None, repr=False)
    key_variable: str
    """Name of the variable that the key is taken from."""
    machine: MachineMonitor = field(default_factory=MachineMonitor)
    say: Callable[[str], object] = lambda _line: None
    """Told what takes long."""


async def examine(profile: TuningProfile, around: Surroundings) -> Diagnosis:
    """Examine the server at the profile's address, or the profile itself where it names none.

    Raises UsageError for an address or a key that cannot be used; whatever else is wrong is a finding.
    """
    diagnosis = await (_running if profile.attached else _before_launch)(profile, around)
    return replace(diagnosis, findings=tuple(sorted(diagnosis.findings, key=lambda f: f.group)))


def diagnosis_to_json(diagnosis: Diagnosis) -> dict[str, Any]:
    """The object of `doctor --json`."""
    return contract_values(DoctorJson, diagnosis, server=diagnosis.examined)


def diagnosis_table(data: dict[str, Any]) -> str:
    """The same for people."""
    lines = finding_lines(data["findings"])
    return "\n".join([_summary(data["server"]), *(lines or [_all_well(data["server"])])])


def _summary(server: dict[str, Any]) -> str:
    """What was examined, in one line."""
    unknown = "unknown"
    parts = [
        f"{server['url'] or server['binary'] or 'no llama-server'} ({server['build'] or 'build unknown'})",
        f"target {server['model'] or unknown}",
        f"mode {server['mode'] or unknown}",
    ]
    if server["mode"] not in {None, OFF}:
        if not is_ngram(server["mode"]):
            parts.append(f"draft {server['draft'] or unknown}")
        parts.append(f"length {server['draft_length'] or unknown}")
    if server["url"] is not None:
        speculating, share = server["speculating"], server["acceptance_ratio"]
        parts.append(f"speculating {unknown if speculating is None else 'yes' if speculating else 'no'}")
        parts.append(f"acceptance ratio {unknown if share is None else format(share, '.2f')}")
    return ", ".join(parts)


def _all_well(server: dict[str, Any]) -> str:
    if server["url"] is None:
        return "healthy: nothing keeps this server from starting"
    if server["speculating"] is None:
        return "healthy: it answers; whether it speculates it does not say"
    return f"healthy: it answers and {'speculates' if server['speculating'] else 'does not speculate'}"


async def _before_launch(profile: TuningProfile, around: Surroundings) -> Diagnosis:
    launcher = Launcher(environ=around.environ, say=around.say)
    findings: list[Finding] = []
    binary: Path | None = None
    caps: Capabilities | None = None
    devices: tuple[Device, ...] | None = None
    try:
        binary = await launcher.binary(profile)
        caps = await launcher.capabilities(binary)
        devices = await list_devices(binary)
    except BinaryError as error:
        # Some old binaries list no devices, which matters only to a profile that names one.
        if caps is None or names_devices(profile):
            findings.append(_said(error))
    else:
        findings += map(_said, unknown_devices(profile, devices))
    finally:
        await launcher.aclose()
    findings += [missing_file(role, path) for role, path in missing_models(profile)]
    if binary is not None and caps is not None:
        findings += _own_arguments(profile, binary, caps, around.environ, {f.code for f in findings})
        findings += _misplaced(profile, caps, devices)
    else:
        findings += map(_said, (*unnamed_target(profile), *unnamed_draft(profile)))
    findings += _taken_port(profile)
    findings += _unusable_prompts(profile)
    speculation = profile.speculation
    seen = await read_models(profile, around.cache)
    findings += seen.findings
    if seen.size_gib:
        findings += too_large(seen.size_gib, await around.machine.sample(), devices or ())
    examined = Examined(
        binary=one_line(str(binary), _LONGEST) if binary is not None else None,
        build=caps.version.label if caps is not None else None,
        model=_name(profile.server.model),
        draft=_name(used_draft(speculation)),
        mode=speculation.mode,
        draft_length=draft_length_of(profile),
        command_checked=caps is not None,
    )
    return Diagnosis(examined=examined, findings=tuple(findings))


def _own_arguments(
    profile: TuningProfile, binary: Path, caps: Capabilities, environ: Mapping[str, str], told: set[str]
) -> list[Finding]:
    """What this binary makes of the profile's command line and of the variables that reach it."""
    server = profile.server
    argv, problems = assemble(profile, caps, binary=str(binary), port=server.port or 1, host=HOST)
    findings = [_said(problem) for problem in problems]
    findings += missing_files(server.extra_args, caps)
    environment, _ = child_environment(environ, inherit=server.inherit_llama_env, caps=caps)
    told = told | {f.code for f in findings}
    checked = check_command(_command_line(argv), caps, environment)
    # A draft model that the profile does not name is missing from its command line as well.
    findings += [f for f in checked.findings if f.code != "draft-model-missing" or f.code not in told]
    return findings


def _misplaced(
    profile: TuningProfile, caps: Capabilities, devices: Sequence[Device] | None
) -> tuple[Finding, ...]:
    """A draft that is told to stay on the CPU beside a target on a GPU; layers for a GPU that is not there.

    devices: None where the binary does not list them.
    """
    server, speculation = profile.server, profile.speculation
    flag = caps.flag("--n-gpu-layers")
    layers = server.gpu_layers
    if layers in {None, "auto"}:
        layers = "all" if flag is not None and flag.default == "auto" else 0
    beside = (
        needs_draft_model(speculation.mode)
        and speculation.draft_gpu_layers == 0
        and bool(devices)
        and server.device != "none"
        and layers != 0
    )
    facts = Facts(
        mode=speculation.mode,
        draft_length=speculation.draft_length,
        draft_on_cpu_beside_gpu=beside,
        gpu_unused=devices == () and asks_for_gpu(profile),
    )
    return tuple(f for f in judge(facts).findings if f.group in _CONCERNS)


def _unusable_prompts(profile: TuningProfile) -> list[Finding]:
    """A workload that cannot be sent; a server would start, and nothing could be measured on it."""
    try:
        load_workload(profile.traffic)
    except SpectuiError as error:
        return [launch_finding(Failure(code="flag-value", text=f"traffic: {error}"), "")]
    return []


def _taken_port(profile: TuningProfile) -> list[Finding]:
    try:
        if profile.server.port is not None:
            require_free_port(HOST, profile.server.port)
    except LaunchError as error:
        return [_said(error)]
    return []


async def _running(profile: TuningProfile, around: Surroundings) -> Diagnosis:
    server = AttachedServer(profile, api_key=around.api_key)
    url = server.client.base_url
    failures: list[Failure] = []
    counters = ServerCounters()
    try:
        if await server.client.health() is Health.LOADING:
            failures.append(Failure(code="server-error", text=f"{url} is still loading its model"))
        else:
            await server.connect()
            counters = parse_metrics(await server.client.metrics_text())
    except ServerError as error:
        failures.append(failure_of(error))
    finally:
        await server.stop()
    known = server.profile
    local = await asyncio.to_thread(local_server, url)
    caps = await _capabilities(local, around) if local is not None else None
    if local is None or caps is None:
        causes = bad_builds(server.build_number, (known.speculation.mode,))
    else:
        checked = check_command(_command_line(local.words), caps, local.environment)
        causes = [_of_running(f) for f in checked.findings]
        if known.speculation.mode == OFF and server.speculating is False and checked.types:
            # Variables ask for speculation as well as flags do.
            known = known.with_speculation(mode=checked.types[0])
    verdict = verdict_of(_bet(counters, server), known, server, failures=failures)
    findings = [_advised(f, around) for f in verdict.findings if f.group in _CONCERNS]
    if local is not None and server.speculating is False:
        causes += await _other_tokenizer(known, local, around.cache)
    findings = [*_with_cause(findings, causes), *causes]
    view = server.view()
    seen = server.props is not None
    examined = Examined(
        url=url,
        binary=one_line(str(local.binary), _LONGEST) if local is not None else None,
        build=view.build,
        model=_name(view.target),
        draft=_name(view.draft),
        mode=known.speculation.mode if seen else None,
        draft_length=_running_length(server, local, caps) if seen else None,
        speculating=server.speculating,
        acceptance_ratio=counters.accepted / counters.drafted
        if counters.drafted and counters.accepted is not None
        else None,
        command_checked=caps is not None,
    )
    return Diagnosis(examined=examined, findings=tuple(findings))


def _bet(counters: ServerCounters, server: AttachedServer) -> BetReading:
    """What the counters count. A pass commits one token more than it accepts, so they tell the passes as well."""
    drafted, accepted, predicted = counters.drafted, counters.accepted, counters.tokens_predicted
    two_pass = bool(server.speculating) and server.build_number in TWO_PASSES
    if drafted is None or accepted is None or predicted is None:
        return BetReading(two_pass=two_pass)
    passes = max(0, int(predicted - accepted))
    return BetReading(passes=passes, drafted=int(drafted), accepted=int(accepted), two_pass=two_pass)


def _advised(finding: Finding, around: Surroundings) -> Finding:
    """The finding with advice that fits a server which is only looked at."""
    advice = {
        "unauthorized": f"give the API key in the variable {around.key_variable}",
        "server-error": "ask again when it is loaded; if that does not come, see its log",
    }.get(finding.code)
    return finding if advice is None else replace(finding, advice=advice)


async def _capabilities(local: LocalServer, around: Surroundings) -> Capabilities | None:
    """What a running server's own binary accepts; None where it cannot be asked."""
    probe = BinaryProbe(say=around.say)
    try:
        return await probe.capabilities(local.binary)
    except BinaryError:
        return None
    finally:
        await probe.aclose()


def _with_cause(findings: Sequence[Finding], causes: Sequence[Finding]) -> list[Finding]:
    """The findings, with the advice of a known cause instead of a look into the log."""
    cause = next((f for f in causes if f.code in _SILENT), None)
    if cause is None:
        return list(findings)
    advice = f"{cause.advice}; the draft only costs memory now"
    return [replace(f, advice=advice) if f.code == "speculation-off" else f for f in findings]


def _running_length(
    server: AttachedServer, local: LocalServer | None, caps: Capabilities | None
) -> int | None:
    """The draft length that was given, or the default of the server's own binary."""
    mode = server.profile.speculation.mode
    if server.length_known or (local is not None and local.names(ALIASES[1])):
        return draft_length_of(server.profile)
    if local is None or caps is None or not mode.startswith("draft-"):
        return None
    flag = caps.flag(caps.first_of(*ALIASES[1]) or "")
    if flag is None:
        return None
    text = next((local.environment[n] for n in flag.env if n in local.environment), flag.default or "")
    return int(text) if text.isdecimal() else None


async def _other_tokenizer(profile: TuningProfile, local: LocalServer, cache: Path | None) -> list[Finding]:
    """Since b9109 a draft with another tokenizer is dropped without a word that says so."""
    server, speculation = profile.server, profile.speculation
    if speculation.mode != PAIRED_MODE or server.model is None or speculation.draft_model is None:
        return []
    target, draft = (file_of(str(local.folder / path)) for path in (server.model, speculation.draft_model))
    if target is None or draft is None:
        return []
    pair = await read_pair(target, draft, speculation.mode, cache)
    return [_of_running(f) for f in pair.findings if f.code == "vocab-mismatch"]


def _of_running(finding: Finding) -> Finding:
    """The server did start, so what is wrong with its settings bears on speculation."""
    return replace(finding, group=max(finding.group, Group.NOT_SPECULATING))


def _command_line(words: Sequence[str]) -> CommandLine:
    return CommandLine(binary=words[0], arguments=redacted(words[1:]))


def _said(error: SpectuiError) -> Finding:
    failure = failure_of(error)
    evidence = {"flag": error.flag, "nearest": error.nearest} if isinstance(error, FlagError) else None
    return launch_finding(replace(failure, text=one_line(failure.text, _LONGEST)), evidence=evidence)


def _name(path: str | None) -> str | None:
    return None if path is None else one_line(Path(path).name.removesuffix(".gguf"), 80)
