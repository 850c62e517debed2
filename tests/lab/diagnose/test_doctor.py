from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spectui.core.profile import ServerSettings, SpeculationSettings, TuningProfile
from spectui.core.verdict.findings import Finding, Group
from spectui.core.views.snapshot import MachineView
from spectui.lab.diagnose import doctor
from spectui.lab.diagnose.doctor import Diagnosis, Surroundings, diagnosis_table, diagnosis_to_json, examine
from spectui.lab.servers.discovery import LocalServer
from spectui.lab.servers.model_check import too_large
from spectui.llama.binary.find import Device
from tests.scripted_server import Failure, Script, ScriptedServer

HELP = Path(__file__).parents[2] / "data" / "help" / "b10434.txt"
GPU = "  CUDA0: NVIDIA GeForce RTX 3090 (24268 MiB, 23892 MiB free)"


@pytest.fixture
def around(tmp_path: Path) -> Surroundings:
    return Surroundings(environ={}, cache=tmp_path / "cache", key_variable="THE_KEY")


def binary(folder: Path, *, build: int = 10434, devices: str = GPU) -> str:
    """A program that says of itself what a llama-server says."""
    path = folder / "llama-server"
    path.write_text(
        f'#!/bin/sh\ncase "$1" in\n--help) cat "{HELP}";;\n'
        f'--version) echo "version: 0.1.0-dev (build {build}, commit 7e4c0a9)" >&2;;\n'
        f"--list-devices) echo '{devices}';;\nesac\n"
    )
    path.chmod(0o755)
    return str(path)


def profile(server: dict[str, object], **speculation: Any) -> TuningProfile:
    return TuningProfile(
        server=ServerSettings(**server),  # type: ignore[arg-type]  # plain keywords
        speculation=SpeculationSettings(**speculation),
    )


def codes(diagnosis: Diagnosis) -> list[str]:
    return [finding.code for finding in diagnosis.findings]


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


async def test_everything_wrong_is_said_at_once(
    tmp_path: Path, around: Surroundings, taken_port: int
) -> None:
    broken = profile(
        {
            "binary": binary(tmp_path),
            "model": "/nowhere/t.gguf",
            "port": taken_port,
            "device": "CUDA0,CUDA7",
            "cache_type_k": "q9",
            "extra_args": ("--draft-max", "9", "--frobnicate"),
        },
        mode="draft-simple",
        draft_model="/nowhere/d.gguf",
        draft_device="Vulkan3",
        draft_cache_type_v="q9",
    )
    found = await examine(broken, around)
    assert not found.ok
    assert sorted(codes(found)) == [
        "draft-model-missing",
        "flag-removed",
        "flag-unknown",
        "flag-unknown",
        "flag-unknown",
        "flag-value",
        "flag-value",
        "model-missing",
        "port-in-use",
    ]
    said = " ".join(f.message for f in found.findings)
    for word in ("CUDA7", "Vulkan3", "server.cache_type_k", "draft_cache_type_v", "--frobnicate"):
        assert word in said
    assert "CUDA0;" not in said
    assert found.examined.build == "b10434"


async def test_without_a_binary_the_rest_is_examined_all_the_same(
    around: Surroundings, taken_port: int
) -> None:
    broken = profile({"binary": "/nowhere/llama-server", "port": taken_port}, mode="draft-simple")
    found = await examine(broken, around)
    assert codes(found) == ["binary-missing", "model-missing", "draft-model-missing", "port-in-use"]
    assert found.examined.binary is None
    assert found.examined.command_checked is False


async def test_a_draft_that_is_not_named_is_said_once(tmp_path: Path, around: Surroundings) -> None:
    found = await examine(
        profile({"binary": binary(tmp_path), "model": str(HELP)}, mode="draft-simple"), around
    )
    assert codes(found) == ["draft-model-missing", "model-corrupt"]


@pytest.mark.parametrize("inherited", [True, False])
async def test_variables_count_only_when_the_server_gets_them(
    tmp_path: Path, around: Surroundings, inherited: bool
) -> None:
    plain = profile({"binary": binary(tmp_path), "extra_args": ("-hf", "a/b")})
    plain = plain.with_server(inherit_llama_env=inherited)
    found = await examine(plain, replace(around, environ={"LLAMA_ARG_DRAFT_MAX": "8"}))
    assert codes(found) == (["env-stale"] if inherited else [])
    assert found.ok is not inherited


@pytest.mark.parametrize(
    ("gpu_layers", "draft_layers", "device", "devices", "expected"),
    [
        ("all", 0, None, GPU, "draft-on-cpu"),
        (None, 0, None, GPU, "draft-on-cpu"),
        (20, 0, None, GPU, "draft-on-cpu"),
        (0, 0, None, GPU, None),
        ("all", 99, None, GPU, None),
        ("all", None, None, GPU, None),
        ("all", 0, "none", GPU, None),
        ("all", 0, None, "  (none)", "gpu-unused"),
        (0, 99, None, "  (none)", "gpu-unused"),
        ("auto", None, None, "  (none)", None),
        ("all", 99, "none", "  (none)", None),
    ],
)
async def test_models_that_are_not_where_they_should_be(
    tmp_path: Path,
    around: Surroundings,
    *,
    gpu_layers: object,
    draft_layers: object,
    device: str | None,
    devices: str,
    expected: str | None,
) -> None:
    server = {"binary": binary(tmp_path, devices=devices), "extra_args": ("-hf", "a/b", "-hfd", "a/c")}
    beside = profile(
        {**server, "gpu_layers": gpu_layers, "device": device},
        mode="draft-simple",
        draft_gpu_layers=draft_layers,
    )
    found = await examine(beside, around)
    assert codes(found) == ([] if expected is None else [expected])
    assert found.ok is (expected != "draft-on-cpu")


async def test_a_known_bad_build(tmp_path: Path, around: Surroundings) -> None:
    bad = profile({"binary": binary(tmp_path, build=10742), "extra_args": ("-hf", "a/b")}, mode="draft-mtp")
    assert codes(await examine(bad, around)) == ["known-bad-build"]


def test_models_larger_than_all_memory() -> None:
    machine = MachineView(memory_total_gib=16.0, gpu_total_gib=8.0)
    larger_gpu = (Device(name="CUDA0", description="", total_mib=24 * 1024, free_mib=0),)
    assert too_large(24.0, machine, ()) == []
    (finding,) = too_large(24.1, machine, ())
    assert finding.code == "out-of-memory"
    assert finding.group is Group.FAILING
    assert finding.evidence == {"models_gib": 24.1, "memory_gib": 24.0}
    assert too_large(24.1, machine, larger_gpu) == []
    assert too_large(1000.0, MachineView(), ()) == []


async def test_findings_come_ranked_by_group(tmp_path: Path, around: Surroundings, taken_port: int) -> None:
    both = profile(
        {
            "binary": binary(tmp_path),
            "gpu_layers": "all",
            "port": taken_port,
            "extra_args": ("-hf", "a/b", "-hfd", "a/c"),
        },
        mode="draft-simple",
        draft_gpu_layers=0,
    )
    assert codes(await examine(both, around)) == ["port-in-use", "draft-on-cpu"]


def attached(server: ScriptedServer, **speculation: Any) -> TuningProfile:
    return profile({"url": server.url}, **speculation)


async def test_a_running_server_is_only_asked(around: Surroundings) -> None:
    async with ScriptedServer(Script(k=4)) as server:
        server.counters.tokens, server.counters.drafted, server.counters.accepted = 300, 400, 200
        found = await examine(attached(server), around)
        asked = server.asked()
    assert found.ok
    assert found.findings == ()
    assert {path for _, path in asked} == {"/health", "/props", "/slots", "/metrics"}
    assert {method for method, _ in asked} == {"GET"}
    assert asked.count(("GET", "/metrics")) == 1
    data = diagnosis_to_json(found)
    assert data["server"]["mode"] == "draft-simple"
    assert data["server"]["draft_length"] is None, "a server of elsewhere does not say it"
    assert data["server"]["acceptance_ratio"] == 0.5
    first, last = diagnosis_table(data).splitlines()
    assert first == (
        f"{server.url} (b10434), target scripted, mode draft-simple, draft unknown, length unknown, "
        "speculating yes, acceptance ratio 0.50"
    )
    assert last == "healthy: it answers and speculates"


@pytest.mark.parametrize(
    ("script", "counted", "speculation", "expected", "ok"),
    [
        (Script(k=0), (500, 0, 0), {"mode": "draft-simple"}, ["speculation-off"], False),
        (Script(k=0), (500, 0, 0), {}, [], True),
        (Script(), (500, 0, 0), {}, ["no-drafts"], False),
        (Script(), (500, 0, 0), {"mode": "ngram-simple"}, [], True),
        (Script(), (10, 0, 0), {}, [], True),
        (Script(), (501, 200, 1), {}, ["wrong-pair"], True),
        (Script(), (501, 49, 0), {}, [], True),
        (Script(metrics=False), (0, 0, 0), {}, ["metrics-disabled"], False),
        (Script(build="b5000-abc"), (500, 400, 300), {}, ["old-two-pass-server"], True),
        (Script(build="b5000-abc", k=0), (500, 0, 0), {}, [], True),
        (Script(build="b7323-abc"), (500, 400, 300), {}, [], True),
        (Script(build="b10742-abc"), (500, 400, 300), {"mode": "draft-mtp"}, ["known-bad-build"], False),
        (Script(failure=Failure.LOADING), (0, 0, 0), {}, ["server-error"], False),
        (Script(failure=Failure.UNAUTHORIZED), (0, 0, 0), {}, ["unauthorized"], False),
    ],
)
async def test_what_a_running_server_says(
    around: Surroundings,
    *,
    script: Script,
    counted: tuple[int, int, int],
    speculation: dict[str, object],
    expected: list[str],
    ok: bool,
) -> None:
    async with ScriptedServer(script) as server:
        server.counters.tokens, server.counters.drafted, server.counters.accepted = counted
        found = await examine(attached(server, **speculation), around)
    assert codes(found) == expected
    assert found.ok is ok


async def test_unknown_stays_unknown_where_nobody_answers(around: Surroundings) -> None:
    found = await examine(profile({"url": "http://127.0.0.1:1"}), around)
    assert codes(found) == ["server-unreachable"]
    assert not found.ok
    assert set(diagnosis_to_json(found)["server"].values()) == {"http://127.0.0.1:1", None, False}


async def test_the_command_line_of_a_local_server_is_checked_with_its_variables(
    around: Surroundings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = LocalServer(
        words=("llama-server", "-hf", "a/b", "-md", "d.gguf", "--api-key=sk-1"),
        binary=Path(binary(tmp_path)),
        folder=tmp_path,
        environment={"LLAMA_ARG_DRAFT_P_MIN": "0.5"},
    )
    monkeypatch.setattr(doctor, "local_server", lambda _url: local)
    async with ScriptedServer(Script(k=0)) as server:
        found = await examine(attached(server, mode="draft-simple"), around)
    assert codes(found) == ["speculation-off", "flag-unknown", "env-stale", "draft-type-missing"]
    assert found.findings[0].advice.startswith("add --spec-type draft-simple")
    assert found.examined.command_checked
    assert "sk-1" not in str(diagnosis_to_json(found))
    monkeypatch.setattr(doctor, "local_server", lambda _url: replace(local, binary=tmp_path / "gone"))
    async with ScriptedServer(Script(k=0)) as server:
        unchecked = await examine(attached(server), around)
    assert unchecked.findings == ()
    assert not unchecked.examined.command_checked


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"LLAMA_ARG_SPEC_DRAFT_MODEL": "d"}, ["speculation-off", "draft-type-missing"]),
        ({"LLAMA_ARG_SPEC_DRAFT_MODEL": "d", "LLAMA_ARG_SPEC_TYPE": "draft-simple"}, ["speculation-off"]),
        ({"LLAMA_ARG_SPEC_DRAFT_MODEL": "d", "LLAMA_ARG_SPEC_TYPE": "none"}, []),
    ],
)
async def test_variables_ask_for_speculation_too(
    around: Surroundings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    variables: dict[str, str],
    expected: list[str],
) -> None:
    local = LocalServer(
        words=("llama-server", "-m", "t"),
        binary=Path(binary(tmp_path)),
        folder=tmp_path,
        environment=variables,
    )
    monkeypatch.setattr(doctor, "local_server", lambda _url: local)
    async with ScriptedServer(Script(k=0)) as server:
        found = await examine(attached(server), around)
    assert codes(found) == expected


async def test_a_length_that_no_flag_names_is_the_default_of_the_servers_own_binary(
    around: Surroundings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = LocalServer(
        words=("llama-server", "-m", "t"), binary=Path(binary(tmp_path)), folder=tmp_path, environment={}
    )
    monkeypatch.setattr(doctor, "local_server", lambda _url: local)
    async with ScriptedServer() as server:
        assert (await examine(attached(server), around)).examined.draft_length == 3
        by_variable = replace(local, environment={"LLAMA_ARG_SPEC_DRAFT_N_MAX": "7"})
        monkeypatch.setattr(doctor, "local_server", lambda _url: by_variable)
        assert (await examine(attached(server), around)).examined.draft_length == 7


def test_the_table_says_each_finding_in_a_line() -> None:
    findings = (
        Finding(code="a", group=Group.FAILING, message="what", advice="do"),
        Finding(code="b", group=Group.TO_KNOW, message="well"),
    )
    lines = diagnosis_table(diagnosis_to_json(Diagnosis(examined=doctor.Examined(), findings=findings)))
    assert lines.splitlines()[1:] == ["a: what; do", "b: well"]


async def test_prompts_that_cannot_be_sent_are_a_finding(around: Surroundings, tmp_path: Path) -> None:
    target = tmp_path / "t.gguf"
    target.write_bytes(b"GGUF")
    empty = tmp_path / "empty.txt"
    empty.write_text("")
    healthy = profile({"binary": binary(tmp_path), "model": str(target)})
    asked = healthy.with_traffic(workload="own", prompts=str(empty))
    told = [f for f in (await examine(asked, around)).findings if f.message.startswith("traffic: ")]
    assert [f.code for f in told] == ["flag-value"]
    assert all(not f.message.startswith("traffic: ") for f in (await examine(healthy, around)).findings)


async def test_an_argument_that_only_prints_is_a_finding(around: Surroundings, tmp_path: Path) -> None:
    asked = profile({"binary": binary(tmp_path), "model": "t.gguf", "extra_args": ("-h",)})
    told = [f.message for f in (await examine(asked, around)).findings if f.code == "flag-value"]
    assert told == ["-h prints something and ends the program"]
