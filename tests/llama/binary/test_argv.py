from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectui.core.profile import TuningProfile
from spectui.errors import FlagError, LaunchError
from spectui.llama.binary.argv import assemble, build_argv, child_environment, command_line
from spectui.llama.binary.capabilities import Capabilities, parse_help
from spectui.llama.binary.pasted_command import parse_command

HELP = Path(__file__).parents[2] / "data" / "help"
CAPS = {era: parse_help((HELP / f"{era}.txt").read_text()) for era in ("b6xxx", "b10068", "b10434")}
B7888 = parse_help(
    "-m,    --model FNAME                    model path to load\n"
    "-np,   --parallel N                     number of slots (default: -1)\n"
    "--spec-type [none|ngram-simple|ngram-mod]\n"
    "                                        type to use when no draft model is provided (default: none)\n"
    "-md,   --model-draft FNAME              draft model (default: unused)\n"
    "--draft-max, --draft, --draft-n N       number of tokens to draft (default: 16)\n"
    "--draft-min, --draft-n-min N            minimum number of draft tokens (default: 0)\n"
    "--draft-p-min P                         minimum probability (default: 0.75)\n"
    "--spec-ngram-size-n N                   ngram size N (default: 12)\n"
    "--spec-ngram-size-m N                   ngram size M (default: 48)\n"
    "--host HOST                             address\n"
    "--port PORT                             port\n"
)


def profile(*, mode: str = "off", server: dict[str, Any] | None = None, **speculation: Any) -> TuningProfile:
    settings = TuningProfile().with_server(**{"model": "t.gguf", **(server or {})})
    return settings.with_speculation(mode=mode, **speculation)


def built(settings: TuningProfile, caps: Capabilities, binary: str = "llama-server") -> str:
    return command_line(build_argv(settings, caps, binary=binary, port=38411))


def test_off_on_a_current_server() -> None:
    assert built(profile(), CAPS["b10434"]) == (
        "llama-server -m t.gguf -np 1 --host 127.0.0.1 --port 38411 --metrics -lv 4"
    )


def test_a_command_for_others_reports_nothing() -> None:
    argv = build_argv(profile(), CAPS["b10434"], binary="llama-server", port=8080, reports=False)
    assert argv == ("llama-server", "-m", "t.gguf", "-np", "1", "--host", "127.0.0.1", "--port", "8080")


def test_draft_on_a_current_server() -> None:
    settings = profile(mode="draft-simple", draft_model="d.gguf", draft_length=16)
    assert built(settings, CAPS["b10434"]) == (
        "llama-server -m t.gguf -np 1 --spec-type draft-simple --spec-draft-model d.gguf --spec-draft-n-max 16"
        " --spec-draft-n-min 0 --spec-draft-p-min 0 --host 127.0.0.1 --port 38411 --metrics -lv 4"
    )


def test_draft_on_an_old_server_has_no_type_but_slots() -> None:
    settings = profile(mode="draft-simple", draft_model="d.gguf", draft_length=4, draft_min=1, p_min=0.6)
    assert built(settings, CAPS["b6xxx"]) == (
        "llama-server -m t.gguf -np 1 --model-draft d.gguf --draft-max 4 --draft-min 1 --draft-p-min 0.6"
        " --host 127.0.0.1 --port 38411 --metrics --slots"
    )


def test_draft_in_the_era_of_ngram_types_only() -> None:
    settings = profile(mode="draft-simple", draft_model="d.gguf", draft_length=8)
    assert built(settings, B7888) == (
        "llama-server -m t.gguf -np 1 --model-draft d.gguf --draft-max 8 --draft-min 0 --draft-p-min 0"
        " --host 127.0.0.1 --port 38411"
    )


@pytest.mark.parametrize("mode", ["ngram-simple", "ngram-map-k", "ngram-map-k4v"])
def test_ngram_sizes(mode: str) -> None:
    settings = profile(mode=mode, ngram_lookup=4, ngram_length=8, ngram_min_hits=2, draft_model="d.gguf")
    argv = built(settings, CAPS["b10434"])
    assert (
        f"--spec-type {mode} --spec-{mode}-size-n 4 --spec-{mode}-size-m 8 --spec-{mode}-min-hits 2 --host"
        in argv
    )
    assert "d.gguf" not in argv


def test_ngram_defaults_are_left_to_the_server() -> None:
    argv = build_argv(profile(mode="ngram-simple"), CAPS["b10434"], binary="llama-server", port=1)
    assert [word for word in argv if "spec" in word] == ["--spec-type"]


def test_ngram_mod_length_lowers_the_minimum_too() -> None:
    settings = profile(mode="ngram-mod", ngram_lookup=16, ngram_length=8)
    assert (
        "--spec-type ngram-mod --spec-ngram-mod-n-match 16 --spec-ngram-mod-n-max 8 --spec-ngram-mod-n-min 0 --host"
    ) in built(settings, CAPS["b10434"])
    assert "--spec-ngram-size-n 16 --draft-max 8 --draft-min 0 --host" in built(settings, B7888)


def test_ngram_cache_takes_no_sizes() -> None:
    argv = built(profile(mode="ngram-cache", ngram_length=8), CAPS["b10434"])
    assert "--spec-type ngram-cache --host" in argv


def test_every_setting_of_the_server() -> None:
    settings = profile(
        server={
            "context": 4096, "parallel": 4, "threads": 6, "gpu_layers": "all", "device": "CUDA0,CUDA1",
            "split_mode": "tensor", "flash_attention": "auto", "cache_type_k": "q8_0", "cache_type_v": "q8_0",
        },
        mode="draft-simple", draft_model="d.gguf", draft_gpu_layers=20, draft_device="CUDA1",
        draft_cache_type_k="q8_0", draft_cache_type_v="f16",
    )  # fmt: skip
    argv = built(settings, CAPS["b10434"])
    assert argv.startswith(
        "llama-server -m t.gguf -c 4096 -np 4 -t 6 -ngl all --device CUDA0,CUDA1 --split-mode tensor"
        " --flash-attn auto --cache-type-k q8_0 --cache-type-v q8_0 --spec-type draft-simple"
    )
    assert (
        "--spec-draft-ngl 20 --spec-draft-device CUDA1 --spec-draft-type-k q8_0 --spec-draft-type-v f16 --host"
        in argv
    )


@pytest.mark.parametrize(
    ("setting", "value", "expected"),
    [
        ("flash_attention", "on", ["--flash-attn"]),
        ("flash_attention", "off", []),
        ("flash_attention", "auto", []),
        ("gpu_layers", "all", ["-ngl", "999"]),
        ("gpu_layers", "auto", []),
        ("gpu_layers", 0, ["-ngl", "0"]),
    ],
)
def test_old_servers_take_fewer_words(setting: str, value: Any, expected: list[str]) -> None:
    plain = build_argv(profile(), CAPS["b6xxx"], binary="s", port=1)
    argv = build_argv(profile(server={setting: value}), CAPS["b6xxx"], binary="s", port=1)
    assert [word for word in argv if word not in plain] == expected


def test_value_that_the_flag_does_not_take() -> None:
    with pytest.raises(FlagError, match=r"takes none, layer, row$") as caught:
        built(profile(server={"split_mode": "tensor"}), CAPS["b6xxx"])
    assert caught.value.flag == "--split-mode tensor"


def test_mode_that_is_not_offered() -> None:
    with pytest.raises(FlagError, match=r"choose one of off, draft-simple$"):
        built(profile(mode="ngram-simple"), CAPS["b6xxx"])
    with pytest.raises(FlagError) as caught:
        built(profile(mode="draft-smple"), CAPS["b10434"])
    assert caught.value.nearest == "--spec-type draft-simple"


def test_setting_without_a_flag_names_the_nearest() -> None:
    caps = parse_help(
        "-m,    --model FNAME                    model\n--paralel N                             slots\n"
    )
    with pytest.raises(
        FlagError, match=r"no --parallel for server\.parallel: the nearest flag is --paralel"
    ) as caught:
        built(profile(), caps)
    assert (caught.value.flag, caught.value.nearest) == ("--parallel", "--paralel")


@pytest.mark.parametrize("mode", ["draft-simple", "draft-eagle3", "draft-dflash"])
def test_draft_mode_needs_a_draft(mode: str) -> None:
    with pytest.raises(LaunchError, match="needs a draft model") as caught:
        built(profile(mode=mode), CAPS["b10434"])
    assert caught.value.code == "draft-model-missing"
    extra = ("-hfd", "org/draft")
    assert "--spec-type" in built(profile(mode=mode, server={"extra_args": extra}), CAPS["b10434"])


def test_mtp_needs_no_draft() -> None:
    assert "--spec-type draft-mtp --spec-draft-n-max 3" in built(profile(mode="draft-mtp"), CAPS["b10434"])


def test_no_model_at_all() -> None:
    with pytest.raises(LaunchError, match="names no model") as caught:
        built(TuningProfile(), CAPS["b10434"])
    assert caught.value.code == "model-missing"
    assert "-hf org/m" in built(TuningProfile().with_server(extra_args=("-hf", "org/m")), CAPS["b10434"])


def test_extra_arguments_come_last_and_win() -> None:
    extra = ("--log-verbosity", "5", "--jinja", "--parallel", "2")
    assert built(profile(server={"extra_args": extra}), CAPS["b10434"]) == (
        "llama-server -m t.gguf --host 127.0.0.1 --port 38411 --metrics --log-verbosity 5 --jinja --parallel 2"
    )


@pytest.mark.parametrize("era", sorted(CAPS))
def test_only_accepted_flags_come_out_for_every_mode(era: str) -> None:
    caps = CAPS[era]
    for mode in caps.modes:
        settings = profile(mode=mode, draft_model="d.gguf", ngram_lookup=4, ngram_length=8)
        argv = build_argv(settings, caps, binary="s", port=1)
        assert all(caps.accepts(word) for word in argv[1:] if word.startswith("-"))


def test_child_environment() -> None:
    environ = {"PATH": "/bin", "LLAMA_ARG_DRAFT_MAX": "16", "LLAMA_LOG_COLORS": "1", "LLAMA_CACHE": "/c"}
    child, found = child_environment(environ, inherit=False)
    assert child == {"PATH": "/bin", "LLAMA_CACHE": "/c", "LLAMA_TRACE": "1"}
    assert found == ("LLAMA_ARG_DRAFT_MAX", "LLAMA_LOG_COLORS")
    child, found = child_environment(environ, inherit=True)
    assert child == {**environ, "LLAMA_TRACE": "1"}
    assert found == ("LLAMA_ARG_DRAFT_MAX", "LLAMA_LOG_COLORS")


@given(st.lists(st.text(min_size=1)))
def test_command_line_survives_a_shell(words: list[str]) -> None:
    assert tuple(shlex.split(command_line(tuple(words)))) == tuple(words)


@given(
    mode=st.sampled_from(CAPS["b10434"].modes),
    model=st.from_regex(r"[a-zA-Z0-9 '$/._]{1,20}", fullmatch=True),
    length=st.integers(1, 64),
    minimum=st.integers(0, 64),
    p_min=st.integers(0, 100),
    lookup=st.none() | st.integers(1, 1024),
    layers=st.none() | st.integers(0, 99) | st.sampled_from(["auto", "all"]),
    parallel=st.integers(1, 64),
)
def test_own_command_lines_are_read_back(
    *,
    mode: str,
    model: str,
    length: int,
    minimum: int,
    p_min: int,
    lookup: int | None,
    layers: Any,
    parallel: int,
) -> None:
    caps = CAPS["b10434"]
    settings = profile(mode=mode, server={"model": model, "gpu_layers": layers, "parallel": parallel})
    if mode.startswith("draft-"):
        settings = settings.with_speculation(
            draft_model="d.gguf", draft_length=length, draft_min=minimum, p_min=p_min / 100
        )
    elif mode not in {"off", "ngram-cache"}:
        settings = settings.with_speculation(ngram_lookup=lookup)
    line = built(settings, caps)
    assert parse_command(line, caps) == settings.with_server(port=38411)


def test_all_problems_are_collected_and_the_rest_is_written() -> None:
    broken = profile(
        mode="draft-simple", server={"cache_type_k": "q9"}, draft_length=5, draft_cache_type_v="q9"
    )
    argv, problems = assemble(broken, CAPS["b10434"], binary="llama-server", port=80)
    said = [str(problem) for problem in problems]
    assert [text.partition(" ")[0] for text in said] == [
        "server.cache_type_k",
        "the",
        "speculation.draft_cache_type_v",
    ]
    assert "--spec-draft-n-max 5" in shlex.join(argv)
    assert "q9" not in argv
    with pytest.raises(FlagError) as caught:
        build_argv(broken, CAPS["b10434"], binary="llama-server", port=80)
    assert str(caught.value) == said[0], "the first one is raised"
