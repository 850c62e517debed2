from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spectui.core.profile import TuningProfile
from spectui.errors import ProfileError
from spectui.store.fields import FieldDoc, describe_fields
from spectui.store.paths import Folders, shipped_examples
from spectui.store.profile_text import parse
from spectui.store.profiles import (
    ProfileEntry,
    last_profile,
    list_profiles,
    load,
    path_of,
    remember_last,
    save,
)


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    examples = tmp_path / "examples"
    examples.mkdir()
    return Folders(
        config=tmp_path / "config",
        cache=tmp_path / "cache",
        data=tmp_path / "data",
        state=tmp_path / "state",
        log=tmp_path / "log",
        examples=examples,
    )


def put(folders: Folders, name: str, text: str) -> Path:
    folders.profiles.mkdir(parents=True, exist_ok=True)
    path = folders.profiles / f"{name}.toml"
    path.write_text(text)
    return path


def problem(path_or_name: str | Path, folders: Folders) -> str:
    with pytest.raises(ProfileError) as caught:
        load(path_or_name, folders)
    message = str(caught.value)
    assert "\n" not in message
    return message


BAD = [
    ("[speculation]\ndraft_lenght = 4", "speculation.draft_lenght: unknown key; did you mean draft_length?"),
    ("[speculation]\ndraft-length = 4", "speculation.draft-length: unknown key; did you mean draft_length?"),
    (
        "[speculation]\ndraft_length = 99",
        "speculation.draft_length: 99 is not allowed; a whole number from 1 to 64",
    ),
    (
        "[speculation]\ndraft_length = 0",
        "speculation.draft_length: 0 is not allowed; a whole number from 1 to 64",
    ),
    (
        '[speculation]\ndraft_length = "4"',
        'speculation.draft_length: "4" is not allowed; a whole number from 1 to 64',
    ),
    (
        "[speculation]\ndraft_length = true",
        "speculation.draft_length: true is not allowed; a whole number from 1 to 64",
    ),
    (
        "[speculation]\ndraft_length = 4.0",
        "speculation.draft_length: 4.0 is not allowed; a whole number from 1 to 64",
    ),
    ("[speculation]\np_min = 1.5", "speculation.p_min: 1.5 is not allowed; a number from 0 to 1"),
    ("[speculation]\np_min = nan", "speculation.p_min: NaN is not allowed; a number from 0 to 1"),
    ('[speculation]\nmode = ""', 'speculation.mode: "" is not allowed; text that is not empty'),
    ("[server]\nready_timeout = inf", "server.ready_timeout: inf is not allowed; a number of at least 1"),
    (
        '[server]\ngpu_layers = "most"',
        'server.gpu_layers: "most" is not allowed; a whole number of at least 0 or "auto" or "all"',
    ),
    (
        '[server]\nsplit_mode = "rows"',
        'server.split_mode: "rows" is not allowed; "none", "layer", "row" or "tensor"',
    ),
    ("[server]\nmodel = 2024-01-01", "server.model: this value is not allowed; text"),
    ('[server]\nextra_args = "--api-key x"', "server.extra_args: this value is not allowed; a list of texts"),
    ('[server]\nmodel = ""', "server.model: is empty; leave the key out instead"),
    ('[server]\nmodel = "a\\u0000b"', "server.model: holds a character that cannot be stored"),
    ('[server]\nmodel = "$NOT_SET_ANYWHERE/x"', "server.model: the variable NOT_SET_ANYWHERE is not set"),
    ('[server]\nmodel = "a$/x"', "server.model: a dollar sign that names no variable is written $$"),
    ('[server]\nmodel = "~nobody-here/x"', "server.model: the user after ~ is not known here"),
    ('[speculation]\ndraft_models = [""]', "speculation.draft_models: holds an empty file name"),
    (
        "[server]\nport = 0\nparallel = 0",
        "server.parallel: 0 is not allowed; a whole number from 1 to 64 (and 1 more)",
    ),
    ('server = "x"', "server: must be a section that begins with [server]"),
    ('[[server]]\nmodel = "x"', "server: must be a section that begins with [server]"),
    ('[speculate]\nmode = "off"', "speculate: unknown key; did you mean speculation?"),
    ('model = "x"', "model: unknown key; it belongs into [server]"),
    ("[server]\ndraft_length = 4", "server.draft_length: unknown key; it belongs into [speculation]"),
    ('[server]\ndescription = "x"', "server.description: unknown key; it belongs above the first section"),
    ("[sampling]\nzzz = 4", "sampling.zzz: unknown key; [sampling] has temperature, seed"),
    ("schema_version = 2\nnew = 1", "schema_version: 2 is newer than this spectui reads (1); update spectui"),
    ('schema_version = "1"', 'schema_version: "1" is not allowed; 1'),
    ("schema_version = true", "schema_version: true is not allowed; 1"),
    ("[server]\nmodel = ", "line 2, column 9: not TOML: Invalid value (text stands in quotes)"),
    ("[server]\nmodel = off", "line 2, column 9: not TOML: Invalid value (text stands in quotes)"),
    ("[server\n", "line 1, column 8: not TOML: "),
    ("[server]\n\nx = [1,", "line 3, column 8: not TOML: Invalid value"),
    ("a = 1\na = 2", "line 2, column 6: not TOML: Cannot overwrite a value"),
    (f"a = {'[' * 5000}", "not a profile: nested too deeply"),
    ("a = " + "9" * 5000, "not TOML: "),
]


@pytest.mark.parametrize(("text", "message"), BAD, ids=[message[:50] for _, message in BAD])
def test_a_bad_profile_is_one_line_with_file_and_key(folders: Folders, text: str, message: str) -> None:
    path = put(folders, "x", text)
    assert problem("x", folders).startswith(f"{path}: {message}")
    assert path.read_text() == text


@pytest.mark.parametrize(
    "text",
    [
        'api_key = "sk-verysecret"',
        '[server]\napi_key = "sk-verysecret"',
        '[server]\napi_key_env = "sk-verysecret"',
        '[server]\napi_key_env = ["sk-verysecret"]',
        '[server]\nextra_args = "--api-key sk-verysecret"',
        '[server]\nextra_args = [["sk-verysecret"]]',
        '[server]\nurl = {key = "sk-verysecret"}',
    ],
)
def test_no_message_repeats_a_secret(folders: Folders, text: str) -> None:
    put(folders, "x", text)
    assert "verysecret" not in problem("x", folders)


def test_control_characters_of_a_file_do_not_reach_the_terminal(folders: Folders) -> None:
    put(folders, "x", '"\\u001b[31m\\n" = 1')
    assert "\x1b" not in problem("x", folders)
    put(folders, "y", '[speculation]\ndraft_length = "\\u001b[31m"')
    assert "\x1b" not in problem("y", folders)


def test_what_is_no_text_file_is_one_line(folders: Folders) -> None:
    path = put(folders, "x", "")
    path.write_bytes(b"GGUF\x03\x00\x00\x00")
    assert problem("x", folders) == f"{path}: is a binary file, not a profile"
    path.write_bytes(b"[server]\nmodel = '\xff'\n")
    assert problem("x", folders) == f"{path}: line 2: is not UTF-8 text"
    path.write_bytes(b"#" * 1_000_001)
    assert problem("x", folders) == f"{path}: is larger than 1 MB, not a profile"
    assert problem(folders.profiles, folders) == f"{folders.profiles}: is a folder, not a profile"
    pipe = folders.profiles / "pipe.toml"
    os.mkfifo(pipe)
    assert problem(pipe, folders) == f"{pipe}: is not a regular file, not a profile"


def test_a_missing_profile_names_the_nearest(folders: Folders) -> None:
    assert problem("code", folders) == 'no profile is named "code"; there are no profiles yet'
    path = put(folders, "code-draft", "")
    put(folders, "zzz", "")
    assert problem("code-drft", folders) == 'no profile is named "code-drft"; did you mean code-draft?'
    assert problem("qqqq", folders) == 'no profile is named "qqqq"; profiles here: code-draft, zzz'
    wrong = path.with_name("code-drat.toml")
    assert problem(wrong, folders) == f"{wrong}: no such file; did you mean {path} or code-draft?"
    assert problem("a\0b.toml", folders).startswith("a b.toml: ")
    assert problem(f"{'x' * 300}.toml", folders).startswith("xxx")


@pytest.mark.parametrize("name", ["", " x", ".hidden", "..", "a\\b", "a\x1bb", "a\nb", "x" * 101])
def test_names_that_are_no_file_names_are_refused(folders: Folders, name: str) -> None:
    assert problem(name, folders).startswith('profile name "')
    with pytest.raises(ProfileError, match="profile name"):
        path_of(name, folders)
    with pytest.raises(ProfileError, match="profile name"):
        save(TuningProfile(), name, folders)


def test_a_name_with_a_slash_is_no_name(folders: Folders) -> None:
    with pytest.raises(ProfileError, match="no path separator"):
        path_of("../../etc/x", folders)


def test_the_users_own_profile_comes_before_the_example(folders: Folders) -> None:
    assert folders.examples is not None
    example = folders.examples / "x.toml"
    example.write_text("[sampling]\nseed = 1")
    assert load("x", folders).path == example
    own = put(folders, "x", "[sampling]\nseed = 2")
    loaded = load("x", folders)
    assert (loaded.path, loaded.name, loaded.profile.sampling.seed) == (own, "x", 2)
    assert load(example, folders).profile.sampling.seed == 1
    assert load(str(example), folders).profile.sampling.seed == 1


def test_file_names_are_resolved(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.setenv("MODELS", "/big")
    put(
        folders,
        "x",
        """
        [server]
        binary = "llama-server"
        model = "$MODELS/t.gguf"
        extra_args = ["$MODELS"]
        [speculation]
        draft_model = "~/d.gguf"
        draft_models = ["d.gguf", "${MODELS}/d$$.gguf", "../e.gguf"]
        [traffic]
        prompts = "p.txt"
        """,
    )
    profile = load("x", folders).profile
    here = str(folders.profiles)
    assert profile.server.binary == "llama-server"
    assert profile.server.model == "/big/t.gguf"
    assert profile.server.extra_args == ("$MODELS",)
    assert profile.speculation.draft_model == "/home/someone/d.gguf"
    assert profile.speculation.draft_models == (f"{here}/d.gguf", "/big/d$.gguf", f"{here}/../e.gguf")
    assert profile.traffic.prompts == f"{here}/p.txt"


def test_an_empty_file_and_a_byte_order_mark_are_fine(folders: Folders) -> None:
    path = put(folders, "x", "")
    assert load("x", folders).profile == TuningProfile()
    path.write_bytes(b"\xef\xbb\xbf[sampling]\r\nseed = 3\r\n")
    assert load("x", folders).profile.sampling.seed == 3


def test_the_list_has_own_profiles_first_and_says_what_is_wrong(folders: Folders) -> None:
    assert list_profiles(folders) == ()
    assert folders.examples is not None
    for name in ("a", "m"):
        (folders.examples / f"{name}.toml").write_text(f'description = "shipped {name}"')
    mine = put(folders, "m", 'description = "two\\nlines \\u001b"')
    broken = put(folders, "z", "[nonsense")
    put(folders, "ignored", "").rename(folders.profiles / "notes.txt")
    put(folders, ".hidden", "")
    own, bad, shipped = list_profiles(folders)
    assert own == ProfileEntry("m", mine, "two lines", builtin=False)
    assert (bad.name, bad.path, bad.builtin) == ("z", broken, False)
    assert bad.problem is not None
    assert bad.problem.startswith(f"{broken}: line 1")
    assert shipped == ProfileEntry("a", folders.examples / "a.toml", "shipped a", builtin=True)


def test_the_last_profile_is_remembered_until_it_is_gone(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert last_profile(folders) is None
    path = put(folders, "x", "")
    remember_last("x", folders)
    assert last_profile(folders) == "x"
    monkeypatch.chdir(folders.profiles)
    remember_last("x.toml", folders)
    assert last_profile(folders) == str(path)
    path.unlink()
    assert last_profile(folders) is None
    (folders.state / "last-profile").write_bytes(b"\xff\x00")
    assert last_profile(folders) is None


def test_a_state_folder_that_cannot_be_made_is_one_line(folders: Folders) -> None:
    folders.state.write_text("a file")
    with pytest.raises(ProfileError, match="last-profile: cannot be saved: "):
        remember_last("x", folders)


@pytest.mark.parametrize("name", ["code-draft", "prose-off", "rewrite-ngram", "mtp", "attach-remote"])
def test_the_shipped_examples_load_and_say_what_they_are(tmp_path: Path, name: str) -> None:
    nothing = tmp_path / "none"
    folders = Folders(
        config=nothing, cache=nothing, data=nothing, state=nothing, log=nothing, examples=shipped_examples()
    )
    entries = {entry.name: entry for entry in list_profiles(folders)}
    assert len(entries) == 5
    assert entries[name].builtin
    assert entries[name].problem is None
    assert entries[name].description


def test_the_shipped_examples_tell_their_stories(tmp_path: Path) -> None:
    folders = Folders(
        config=tmp_path,
        cache=tmp_path,
        data=tmp_path,
        state=tmp_path,
        log=tmp_path,
        examples=shipped_examples(),
    )
    assert load("code-draft", folders).profile.speculation.mode == "draft-simple"
    assert load("prose-off", folders).profile.speculation.mode == "off"
    ngram = load("rewrite-ngram", folders).profile.speculation
    assert (ngram.mode, ngram.ngram_lookup, ngram.ngram_length) == ("ngram-simple", 4, 8)
    assert load("mtp", folders).profile.speculation.mode == "draft-mtp"
    remote = load("attach-remote", folders).profile
    assert remote.attached
    assert remote.server.api_key_env == "SPECTUI_API_KEY"
    assert remote.baseline.tokens_per_second == 34.0


def outcome(text: str) -> str:
    try:
        parse(text, source="x", folder=Path("/"))
    except ProfileError as error:
        return str(error)
    return "x: loads"


WEIRD = st.one_of(
    st.integers(-(10**30), 10**30).map(str),
    st.sampled_from(
        [
            "nan",
            "-inf",
            "1e400",
            "true",
            "1979-05-27",
            "07:32:00",
            "[]",
            "{}",
            "[[]]",
            '[""]',
            "{a = 1}",
            '""',
            "''",
        ]
    ),
    st.text(max_size=8).map(lambda text: json.dumps(text, ensure_ascii=False)),
)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([*describe_fields()]), WEIRD)
def test_any_value_anywhere_loads_or_is_one_line(doc: FieldDoc, value: str) -> None:
    header = f"[{doc.section}]\n" if doc.section else ""
    message = outcome(f"{header}{doc.name} = {value}\n")
    assert message.startswith("x: ")
    assert message.isprintable()


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=40))
def test_any_text_loads_or_is_one_line(text: str) -> None:
    message = outcome(text)
    assert message.startswith("x: ")
    assert message.isprintable()


def test_importing_loads_no_validator_and_no_editor() -> None:
    code = (
        "import sys, spectui.store.profiles, spectui.store.baselines\n"
        "print([m for m in ('pydantic', 'tomlkit', 'platformdirs', 'httpx', 'asyncio') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout == "[]\n"
