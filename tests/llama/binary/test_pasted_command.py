from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectui.core.profile import TuningProfile
from spectui.errors import UsageError
from spectui.llama.binary.capabilities import parse_help
from spectui.llama.binary.pasted_command import GivenOption, given_options, parse_command, split_command

HELP = Path(__file__).parents[2] / "data" / "help"
NEW = parse_help((HELP / "b10434.txt").read_text())
OLD = parse_help((HELP / "b6xxx.txt").read_text())


def test_continuations_assignments_and_redirections() -> None:
    command = split_command(
        "CUDA_VISIBLE_DEVICES=0 LLAMA_ARG_DRAFT_P_MIN=0.75 nohup /opt/llama/llama-server \\\n"
        "  -m 'my model.gguf' \\\r\n  -c 4096 > log.txt 2>&1 &\n"
    )
    assert command.binary == "/opt/llama/llama-server"
    assert command.arguments == ("-m", "my model.gguf", "-c", "4096")
    assert command.environment == (("CUDA_VISIBLE_DEVICES", "0"), ("LLAMA_ARG_DRAFT_P_MIN", "0.75"))


@pytest.mark.parametrize("end", ["2>&1 | tee log", "&& echo done", "; true", ">>log", "&"])
def test_what_the_shell_would_take_is_left_out(end: str) -> None:
    assert split_command(f"llama-server -m t.gguf {end}").arguments == ("-m", "t.gguf")


def test_arguments_alone_and_windows_name() -> None:
    assert split_command("-m t.gguf").binary is None
    assert split_command("llama-server.exe -m t.gguf").binary == "llama-server.exe"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("  \\\n ", "empty"),
        ("llama-server -m 'x", "quotes"),
        ("ls -la", "no llama-server command"),
    ],
)
def test_unreadable_commands(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        split_command(text)


def test_options_take_as_many_values_as_help_says() -> None:
    arguments = ("--spec-replace", "a", "b", "-fa", "-ngl", "-1", "--unknown", "x", "stray", "--metrics")
    assert given_options(arguments, OLD) == (
        GivenOption("--spec-replace", ("a", "b")),
        GivenOption("-fa", ()),
        GivenOption("-ngl", ("-1",)),
        GivenOption("--unknown", ("x",)),
        GivenOption("stray", ()),
        GivenOption("--metrics", ()),
    )
    assert given_options(("-fa", "-m", "t.gguf"), NEW)[0] == GivenOption("-fa", ())
    assert given_options(("-ngl", "-1", "-fa", "on"))[0] == GivenOption("-ngl", ("-1",))


def test_full_command_of_today() -> None:
    profile = parse_command(
        "/opt/llama-server -m t.gguf -c 8192 -np 2 -ngl all -fa on -ctk q8_0 --spec-type draft-simple -md d.gguf "
        "--spec_draft_n_max 8 --spec-draft-p-min 0.6 -ngld 99 --port 8081 --metrics -lv 3 --temp 0.7 -s 42 "
        "--jinja --host 192.168.1.2",
        NEW,
    )
    server, speculation = profile.server, profile.speculation
    assert (server.binary, server.model, server.context, server.parallel) == (
        "/opt/llama-server",
        "t.gguf",
        8192,
        2,
    )
    assert (server.gpu_layers, server.flash_attention, server.cache_type_k, server.port) == (
        "all",
        "on",
        "q8_0",
        8081,
    )
    assert server.extra_args == ("--jinja", "--host", "192.168.1.2")
    assert (speculation.mode, speculation.draft_model, speculation.draft_length) == (
        "draft-simple",
        "d.gguf",
        8,
    )
    assert (speculation.p_min, speculation.draft_gpu_layers) == (0.6, 99)
    assert (profile.sampling.temperature, profile.sampling.seed) == (0.7, 42)


def test_draft_model_without_type_is_a_wish_to_speculate() -> None:
    assert parse_command("llama-server -m t.gguf -md d.gguf", NEW).speculation.mode == "draft-simple"
    assert parse_command("llama-server -m t.gguf -hfd org/d").speculation.mode == "draft-simple"
    assert parse_command("llama-server -m t.gguf -md d.gguf --spec-type none").speculation.mode == "off"
    assert parse_command("llama-server -m t.gguf").speculation.mode == "off"


def test_defaults_are_those_of_the_binary() -> None:
    command = "llama-server -m t.gguf -md d.gguf"
    old, new = parse_command(command, OLD).speculation, parse_command(command, NEW).speculation
    assert (old.draft_length, old.p_min) == (16, 0.75)
    assert (new.draft_length, new.p_min) == (3, 0.0)


def test_old_names_and_removed_flags_keep_their_meaning() -> None:
    speculation = parse_command(
        "llama-server -m t -md d --spec-type draft --draft-max 16 --draft-min 1"
    ).speculation
    assert (speculation.mode, speculation.draft_length, speculation.draft_min) == ("draft-simple", 16, 1)


def test_ngram_sizes_go_to_the_mode_that_uses_them() -> None:
    profile = parse_command(
        "llama-server -m t --spec-type ngram_simple --spec-ngram-simple-size-n 4 --spec-ngram-size-m 8"
        " --spec-ngram-mod-n-max 64"
    )
    assert (profile.speculation.ngram_lookup, profile.speculation.ngram_length) == (4, 8)
    assert profile.server.extra_args == ("--spec-ngram-mod-n-max", "64")
    mod = parse_command("llama-server -m t --spec-default --draft-max 32").speculation
    assert (mod.mode, mod.ngram_length, mod.draft_length) == ("ngram-mod", 32, 3)


def test_length_zero_means_off() -> None:
    speculation = parse_command(
        "llama-server -m t -md d --spec-type draft-simple --spec-draft-n-max 0"
    ).speculation
    assert (speculation.mode, speculation.draft_length) == ("off", 1)


def test_value_for_automatic_is_left_to_the_server() -> None:
    profile = parse_command("llama-server -m t -np -1 -t -1", NEW)
    assert profile.server.parallel == 1
    assert profile.server.extra_args == ("-np", "-1", "-t", "-1")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("-c many", "-c cannot be many: it takes a whole number"),
        ("--spec-draft-n-max 100", "cannot be 100: it takes 0 to 64"),
        ("--spec-draft-p-min 1.5", "it takes a number from 0 to 1"),
        ("--temp nan", "it takes a number from 0 to 5"),
        ("-sm diagonal", "it takes none, layer, row, tensor"),
        ("-m", "-m cannot be empty"),
        ("-np 0", "it takes 1 to 64"),
        ("--spec-type draft-mtp,ngram-mod", "chains draft-mtp, ngram-mod"),
    ],
)
def test_values_that_cannot_be(arguments: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_command(f"llama-server {arguments}")


@given(st.text())
def test_any_text_gives_a_profile_or_one_line(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert isinstance(parse_command(text, NEW), TuningProfile)


@given(st.lists(st.from_regex(r"[a-z0-9-]{1,8}", fullmatch=True)))
def test_grouping_loses_no_word(words: list[str]) -> None:
    arguments = tuple(words)
    for caps in (None, NEW, OLD):
        assert tuple(word for option in given_options(arguments, caps) for word in option.words) == arguments
