from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectui.core.profile import ServerSettings, TuningProfile
from spectui.core.secrets import (
    SECRET_ARGUMENTS,
    api_key_of,
    is_secret,
    key_variable_of,
    redacted,
    without_secrets,
)

SECRET = "sk-7f3a-do-not-show"
words = st.lists(
    st.sampled_from(["llama-server", "-m", "t.gguf", "--port", "80", "-fa", "--metrics"]), max_size=8
)


@pytest.mark.parametrize(
    ("arguments", "shown", "kept"),
    [
        (["-m", "t.gguf"], ("-m", "t.gguf"), ("-m", "t.gguf")),
        (
            ["-m", "t", "--api-key", "x", "-c", "9"],
            ("-m", "t", "--api-key", "***", "-c", "9"),
            ("-m", "t", "-c", "9"),
        ),
        (["--api-key=x", "-c", "9"], ("--api-key=***", "-c", "9"), ("-c", "9")),
        (["--api-key=", "-c", "9"], ("--api-key=***", "-c", "9"), ("-c", "9")),
        (["-hft", "x", "-m", "t"], ("-hft", "***", "-m", "t"), ("-m", "t")),
        (["--hf_token", "x"], ("--hf_token", "***"), ()),
        (["--api-key", "--starts-like-a-flag"], ("--api-key", "***"), ()),
        (["--api-key", "a", "--api-key", "b"], ("--api-key", "***", "--api-key", "***"), ()),
        (["-m", "t", "--api-key"], ("-m", "t", "--api-key"), ("-m", "t")),
        (["--api-key-file", "keys.txt"], ("--api-key-file", "keys.txt"), ("--api-key-file", "keys.txt")),
        ([], (), ()),
    ],
)
def test_secrets_are_hidden_or_left_out(
    arguments: list[str], shown: tuple[str, ...], kept: tuple[str, ...]
) -> None:
    assert redacted(arguments) == shown
    assert without_secrets(arguments) == kept


@given(words, words, st.sampled_from(SECRET_ARGUMENTS), st.booleans())
def test_a_secret_never_comes_through_and_the_rest_does(
    before: list[str], after: list[str], flag: str, joined: bool
) -> None:
    given_words = [f"{flag}={SECRET}"] if joined else [flag, SECRET]
    arguments = [*before, *given_words, *after]
    assert SECRET not in " ".join(redacted(arguments))
    assert len(redacted(arguments)) == len(arguments)
    assert without_secrets(arguments) == (*before, *after)


@given(words)
def test_arguments_without_secrets_stay_as_they_are(arguments: list[str]) -> None:
    assert redacted(arguments) == without_secrets(arguments) == tuple(arguments)
    assert not any(map(is_secret, arguments))


@pytest.mark.parametrize(
    ("named", "variable", "environ", "key"),
    [
        (None, "SPECTUI_API_KEY", {"SPECTUI_API_KEY": "general"}, "general"),
        (None, "SPECTUI_API_KEY", {"MINE": "own"}, None),
        (None, "SPECTUI_API_KEY", {"SPECTUI_API_KEY": ""}, None),
        ("MINE", "MINE", {"SPECTUI_API_KEY": "general", "MINE": "own"}, "own"),
        ("MINE", "MINE", {"SPECTUI_API_KEY": "general"}, None),
    ],
)
def test_the_key_of_a_server(
    named: str | None, variable: str, environ: dict[str, str], key: str | None
) -> None:
    profile = TuningProfile(server=ServerSettings(url="http://a:1", api_key_env=named))
    assert key_variable_of(profile) == variable
    assert api_key_of(profile, environ) == key
