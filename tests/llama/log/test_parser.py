from __future__ import annotations

import json
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from spectui.llama.log.events import (
    Acceptance,
    BufferPlaced,
    BuildInfo,
    DeviceFound,
    Event,
    LayersOffloaded,
    Listening,
    LoadProgress,
    LogFailure,
    ModelLoaded,
    PassTrace,
    Placement,
    Role,
    SpeculationInit,
    SpeculationOff,
    Statistics,
    root_failure,
)
from spectui.llama.log.parser import _TABLE, LogParser, clean_line

LOGS = Path(__file__).parents[2] / "data" / "logs"
ALL = ("b10434-draft", "b10434-draft-pmin", "b10434-draft-loaded-but-off", "b10434-ngram", "b6xxx-draft-max")
T = TypeVar("T")


def read(lines: list[str], *, with_draft: bool = True) -> list[Event]:
    parser = LogParser(with_draft=with_draft)
    return [event for line in lines if (event := parser.feed(line)) is not None]


def of(name: str) -> list[Event]:
    return read((LOGS / f"{name}.log").read_text().splitlines())


def only(kind: type[T], events: list[Event]) -> list[T]:
    return [event for event in events if isinstance(event, kind)]


def one(line: str) -> Event | None:
    return LogParser().feed(line)


@pytest.mark.parametrize("name", ALL)
def test_every_start_ends_listening_and_progress_never_falls(name: str) -> None:
    events = of(name)
    fractions = [event.fraction for event in only(LoadProgress, events)]
    assert fractions == sorted(set(fractions))
    assert 0 < fractions[0] <= 0.05
    assert fractions[-1] <= 0.98
    loaded, listening = events.index(ModelLoaded()), events.index(only(Listening, events)[0])
    assert loaded < listening
    assert only(Listening, events)[0].url.startswith("http://127.0.0.1:84")
    assert not only(LogFailure, events)
    assert not only(LoadProgress, events[listening:])


def test_progress_tells_the_models_apart() -> None:
    notes = [event.note for event in only(LoadProgress, of("b10434-draft"))]
    assert notes.index("warming up the target model") < notes.index("loading the draft model")
    assert "making the context of the draft model" in notes


def test_without_a_draft_the_target_takes_the_whole_bar() -> None:
    line = "0.00.301.432 I cmn  common_init_: warming up the model with an empty run - please wait"
    assert read([line], with_draft=False) == [LoadProgress(0.86, "warming up the target model")]
    assert read([line]) == [LoadProgress(0.545, "warming up the target model")]


def test_build_and_devices() -> None:
    assert only(BuildInfo, of("b10434-draft")) == [BuildInfo(1, "7e4c0a9")]
    assert only(BuildInfo, of("b6xxx-draft-max")) == [BuildInfo(1, "4227c9b")]
    assert one("build: 5142 (80f19b41) with cc for x86_64-linux-gnu") == BuildInfo(5142, "80f19b41")
    assert one("0.00.001 I srv: build_info: b9219-49b42c9c3") == BuildInfo(9219, "49b42c9c3")
    assert one('INFO [ main] build info | tid="1" build=4411 commit="55d3c05b"') == BuildInfo(
        4411, "55d3c05b"
    )
    assert only(DeviceFound, of("b10434-draft")) == [DeviceFound("CPU", "AMD EPYC", 24105.0, 24105.0)]


def placed(lines: list[str]) -> Placement:
    placement = Placement()
    for event in read(lines):
        placement.add(event)
    return placement


@pytest.mark.parametrize("name", ["b10434-draft", "b6xxx-draft-max"])
def test_a_machine_without_gpu_reads_as_cpu_whatever_the_layers_line_says(name: str) -> None:
    lines = (LOGS / f"{name}.log").read_text().splitlines()
    buffers = only(BufferPlaced, read(lines))
    assert buffers == [
        BufferPlaced(Role.TARGET, "CPU_Mapped", 218.93),
        BufferPlaced(Role.DRAFT, "CPU_Mapped", 85.76),
    ]
    placement = placed(lines)
    assert (placement.target_place, placement.draft_place) == ("CPU", "CPU")
    assert placement.devices == ("the CPU",)


def test_gpu_placement_of_target_and_draft() -> None:
    lines = [
        "srv    load_model: loading model '32b.gguf'",
        "load_tensors: offloaded 33/65 layers to GPU",
        "load_tensors:   CPU_Mapped model buffer size =  9000.00 MiB",
        "load_tensors:        CUDA0 model buffer size =  9500.50 MiB",
        "load_tensors:    CUDA_Host model buffer size =   100.00 MiB",
        "srv    load_model: loading draft model '0.5b.gguf'",
        "load_tensors:      Vulkan0 model buffer size =   500.25 MiB",
    ]
    placement = placed(lines)
    assert placement.target_place == "GPU 33/65"
    assert placement.devices == ("GPU 0", "the CPU")
    assert placement.draft_place == "GPU"
    assert placement.gpu_mib(Role.TARGET) == 9500.5
    assert placement.gpu_mib(Role.DRAFT) == 500.25


@pytest.mark.parametrize(
    ("buffers", "devices"),
    [
        (("CPU_Mapped", "CUDA1"), ("GPU 1",)),
        (("CPU_Mapped", "Vulkan1"), ("GPU 1",)),
        (("CPU_Mapped", "CUDA0", "CUDA1", "CUDA_Host"), ("GPU 0", "GPU 1")),
        (("Metal_Mapped",), ("GPU 0",)),
        (("RPC0[10.0.0.5:50052]",), ("RPC0[10.0.0.5:50052]",)),
        (("CPU_REPACK",), ("the CPU",)),
        ((), ()),
    ],
)
def test_a_model_that_is_wholly_on_gpus_does_not_compute_on_the_cpu(
    buffers: tuple[str, ...], devices: tuple[str, ...]
) -> None:
    placement = Placement()
    placement.add(LayersOffloaded(Role.TARGET, 33, 33))
    for buffer in buffers:
        placement.add(BufferPlaced(Role.TARGET, buffer, 100.0))
    assert placement.devices == devices


def test_placement_is_unknown_before_a_buffer() -> None:
    placement = Placement()
    assert placement.add(LayersOffloaded(Role.TARGET, 33, 33))
    assert not placement.add(ModelLoaded())
    assert (placement.target_place, placement.draft_place) == (None, None)
    assert placement.devices == ()


def test_speculation_that_was_set_up() -> None:
    assert only(SpeculationInit, of("b10434-draft-pmin")) == [
        SpeculationInit("draft-simple"),
        SpeculationInit("draft-simple", n_max=8, n_min=0, p_min=0.6),
    ]
    assert only(SpeculationInit, of("b10434-ngram"))[-1] == SpeculationInit("ngram-simple", n_max=8)


@pytest.mark.parametrize(
    ("kind", "line", "n_max", "n_min"),
    [
        ("ngram_mod", "- n_match=24, n_max=64, n_min=48", 64, 48),
        ("ngram-cache", "- n_draft=8, cache_static=none, cache_dynamic=none", 8, None),
        ("ngram-map-k", "- size_key=12, size_value=48, key_only=1, min_hits=1", 48, None),
    ],
)
def test_lengths_of_lookups(kind: str, line: str, n_max: int, n_min: int | None) -> None:
    announced = f"0.00.1 I spec common_specu: adding speculative implementation '{kind}'"
    events = read([announced, f"0.00.316.725 I spec common_specu: {line}"])
    assert events[-1] == SpeculationInit(kind.replace("_", "-"), n_max=n_max, n_min=n_min)


def test_draft_that_was_loaded_for_nothing() -> None:
    (off,) = only(SpeculationOff, of("b10434-draft-loaded-but-off"))
    assert off == SpeculationOff("no implementations specified for speculative decoding", draft_loaded=True)
    plain = one("0.00.540.333 I spec common_specu: no implementations specified for speculative decoding")
    assert isinstance(plain, SpeculationOff)
    assert not plain.draft_loaded


@pytest.mark.parametrize(
    "line",
    [
        "0.00.900.000 W srv    load_model: speculative decoding not supported by this context",
        "srv    load_model: err: speculative decode is not supported by multimodal",
        "speculative decoding is not supported with multimodal",
        "the target context does not support partial sequence removal",
        "draft model is not eagle3 (expected 3 extract layers, got 0)",
        "failed to initialize speculative decoding context: something new",
    ],
)
def test_the_servers_own_word_that_it_is_off(line: str) -> None:
    assert isinstance(one(line), SpeculationOff)


def test_passes_requests_and_statistics_of_a_real_run_agree() -> None:
    for name in ("b10434-draft", "b10434-draft-pmin", "b10434-ngram"):
        events = of(name)
        passes, requests = only(PassTrace, events), only(Acceptance, events)
        last = only(Statistics, events)[-1]
        assert sum(p.drafted for p in passes) == sum(r.drafted for r in requests) == last.drafted
        assert sum(p.accepted for p in passes) == sum(r.accepted for r in requests) == last.accepted
        assert len(passes) == last.drafts
        assert sum(p.accepted > 0 for p in passes) == last.accepted_drafts


def test_statistics_line_of_today() -> None:
    assert only(Statistics, of("b10434-draft"))[0] == Statistics(
        implementation="draft-simple",
        calls=23,
        drafts=23,
        accepted_drafts=16,
        drafted=87,
        accepted=39,
        draft_ms=809.409,
        mean_length=2.7,
        per_position=(0.696, 0.478, 0.348, 0.174),
    )


@pytest.mark.parametrize(
    ("calls_text", "duration_text", "calls", "draft_ms"),
    [
        ("#calls = 810", "dur = 1.403", 810, 1.403),
        ("#calls = 810", "dur(b,g,a) = 0.149, 0.347, 0.005", 810, 0.347),
        ("#calls(b,g,a) = 6 1690 26", "dur(b,g,a) = 0.149, 0.347, 0.005", 1690, 0.347),
    ],
)
def test_statistics_lines_of_older_builds(
    calls_text: str, duration_text: str, calls: int, draft_ms: float
) -> None:
    counts = "#gen drafts = 15, #acc drafts = 14, #gen tokens = 960, #acc tokens = 730"
    line = f"statistics ngram_mod: {calls_text}, {counts}, {duration_text} ms"
    assert one(line) == Statistics(
        implementation="ngram-mod",
        calls=calls,
        drafts=15,
        accepted_drafts=14,
        drafted=960,
        accepted=730,
        draft_ms=draft_ms,
    )


def test_statistics_line_that_lacks_a_count_is_no_event() -> None:
    assert one("statistics mtp: #calls(b,g,a) = 1 2 3, #gen drafts = 4") is None


@pytest.mark.parametrize(
    ("words", "rest", "mean"),
    [
        ("acceptance rate = 0.96855", "", None),
        ("acceptance = 0.57576", "", None),
        ("acceptance = 0.96", ", mean acceptance length =  2.63, acceptance rate per position = (0.9)", 2.63),
        ("acceptance = 1.00000", ", mean len =  4.60", 4.6),
    ],
)
def test_acceptance_lines_of_every_era(words: str, rest: str, mean: float | None) -> None:
    assert one(f"slot print_timing: draft {words} (  154 accepted /   159 generated){rest}") == Acceptance(
        154, 159, mean
    )


def test_old_server_reports_requests() -> None:
    assert only(Acceptance, of("b6xxx-draft-max")) == [
        Acceptance(28, 66),
        Acceptance(13, 56),
        Acceptance(15, 32),
    ]


def test_trace_with_and_without_rollback() -> None:
    assert one("0.00.900.745 I slot   operator(): id  0 | task 0 | accepted  3/ 4 draft tokens") == PassTrace(
        3, 4
    )
    line = "srv update_slots: accepted  2/ 4 draft tokens (restore checkpoint)"
    assert one(line) == PassTrace(2, 4, restored=True)


FAILURES = [tuple(row.split("\t")) for row in (LOGS / "failures.tsv").read_text().splitlines()]


@pytest.mark.parametrize(("code", "subject", "line"), FAILURES)
def test_failures(code: str, subject: str, line: str) -> None:
    event = one(line)
    assert isinstance(event, LogFailure)
    assert (event.code, event.subject) == (code, subject or None)


@pytest.mark.parametrize(
    "line",
    [
        "the target and draft vocabs are not compatible - tokens will be translated between the two",
        'got exception: {"error":{"code":400,"message":"bad request"}}',
        "main: HTTP server is listening, hostname: 127.0.0.1, port: 8414, http threads: 3",
        "draft tokens are nice",
        "",
    ],
)
def test_lines_that_mean_nothing_here(line: str) -> None:
    assert one(line) is None


def test_root_of_a_truncated_draft_names_the_file() -> None:
    damaged = (
        "tensor 'token_embd.weight' data is not within the file bounds, model is corrupted or incomplete"
    )
    lines = [
        f"0.00.473.427 E llama_model_load: error loading model: {damaged}",
        "0.00.473.502 E srv    load_model: failed to load draft model, 'trunc.gguf'",
        "0.00.474.000 E srv  llama_server: exiting due to model loading error",
    ]
    failures = only(LogFailure, read(lines))
    assert [f.code for f in failures] == ["model-corrupt", "server-crashed", "server-crashed"]
    root = root_failure(failures)
    assert root is not None
    assert (root.code, root.subject) == ("model-corrupt", "trunc.gguf")
    assert root_failure([]) is None
    assert root_failure(failures[2:]) == failures[2]


def test_json_lines_colours_and_control_characters() -> None:
    message = "draft acceptance = 0.5 (  1 accepted /  2 generated)\n"
    record = json.dumps({"type": "log", "time": 1, "level": "info", "msg": message}, separators=(",", ":"))
    assert one(record) == Acceptance(1, 2)
    assert one('{"type":"log", broken draft acceptance') is None
    assert one("\x1b[31m0.00.001.002 E \x1b[0mmodel loaded") == ModelLoaded()
    assert clean_line("\x1b[32m10.04.484.407 I \x1b[0mslot x: \x07a\x1b]0;title\x07b") == "slot x:  ab"
    assert clean_line("18:14.61 I slot- 0 print_timi | x") == "slot- 0 print_timi | x"
    failure = one("error: invalid argument: --x\x1b[2J\x00")
    assert isinstance(failure, LogFailure)
    assert failure.text == "error: invalid argument: --x"


def test_long_text_is_cut() -> None:
    failure = one("out of memory " + "x" * 5000)
    assert isinstance(failure, LogFailure)
    assert len(failure.text) == 303


@given(st.text())
def test_any_line_is_read_without_error(line: str) -> None:
    parser = LogParser()
    parser.feed(line)
    assert clean_line(line).isprintable()


@given(
    st.sampled_from(["statistics ", "draft acceptance", "accepted 1/ 2 draft tokens", "n_max="]), st.text()
)
def test_broken_lines_are_no_error(start: str, rest: str) -> None:
    # Hypothesis takes texts from the parser's own source: a rest that another row reads is no broken line.
    assume(not any(literal in rest for literal, *_ in _TABLE))
    whole = start.startswith("accepted")
    assert LogParser().feed(start + rest) == (PassTrace(1, 2) if whole else None)
