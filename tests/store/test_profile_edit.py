from __future__ import annotations

import stat
import string
import tempfile
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spectui.core.profile import (
    BaselineSettings,
    SamplingSettings,
    ServerSettings,
    SpeculationSettings,
    TrafficSettings,
    TuningProfile,
)
from spectui.errors import ProfileError
from spectui.store.paths import Folders
from spectui.store.profiles import load, save

OLD = """\
# my profile
schema_version = 1

description = 'single quotes'   # kept

[server]
# the big one
model = "~/models/t.gguf"  # on the SSD
context = 8_192
extra_args = [
  "--no-warmup",  # quick
  "--jinja",
]

# ---- the bet ----
[speculation]
mode = "draft-simple"
draft_model = "drafts/d.gguf"
draft_models = [ "drafts/d.gguf", "$MODELS/e.gguf" ]
draft_length = 0x10
p_min = 0   # whole
ngram_lookup = 4

# ---- what is sent ----
[traffic]
workload = "code"
"""


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folders:
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.setenv("MODELS", "/big")
    return in_folder(tmp_path)


def in_folder(folder: Path) -> Folders:
    return Folders(
        config=folder / "config",
        cache=folder / "cache",
        data=folder / "data",
        state=folder / "state",
        log=folder / "log",
    )


def put(folders: Folders, text: str, name: str = "x") -> Path:
    folders.profiles.mkdir(parents=True, exist_ok=True)
    path = folders.profiles / f"{name}.toml"
    path.write_bytes(text.encode())
    return path


def changed_lines(old: str, new: str) -> tuple[list[str], list[str]]:
    """Lines that went and lines that came."""
    return (
        [line for line in old.splitlines() if line not in new.splitlines()],
        [line for line in new.splitlines() if line not in old.splitlines()],
    )


def test_saving_without_a_change_keeps_every_byte(folders: Folders) -> None:
    path = put(folders, OLD)
    save(load("x", folders).profile, "x", folders)
    assert path.read_text() == OLD


def test_only_what_changed_is_touched(folders: Folders) -> None:
    path = put(folders, OLD)
    profile = load("x", folders).profile.with_speculation(draft_length=4, p_min=0.5, ngram_lookup=None)
    profile = profile.with_traffic(workload="prose").with_sampling(temperature=0.7)
    save(profile, "x", folders)
    gone, new = changed_lines(OLD, path.read_text())
    assert gone == ["draft_length = 0x10", "p_min = 0   # whole", "ngram_lookup = 4", 'workload = "code"']
    assert new == [
        "draft_length = 4",
        "p_min = 0.5   # whole",
        'workload = "prose"',
        "[sampling]",
        "temperature = 0.7",
    ]
    assert load("x", folders).profile == profile


def test_a_present_key_is_written_even_when_it_has_its_default(folders: Folders) -> None:
    path = put(folders, OLD)
    save(load("x", folders).profile.with_speculation(mode="off", draft_length=3), "x", folders)
    assert 'mode = "off"' in path.read_text()
    assert "draft_length = 3" in path.read_text()


def test_a_new_key_stands_with_its_section(folders: Folders) -> None:
    path = put(folders, OLD)
    save(load("x", folders).profile.with_server(parallel=2), "x", folders)
    lines = path.read_text().splitlines()
    assert lines.index("parallel = 2") == lines.index("]") + 1
    assert lines.index("# ---- the bet ----") == lines.index("[speculation]") - 1


def test_a_list_keeps_the_words_of_its_old_parts(folders: Folders) -> None:
    path = put(folders, OLD)
    profile = load("x", folders).profile
    drafts = (*profile.speculation.draft_models, "/other/f$.gguf")
    save(profile.with_speculation(draft_models=drafts), "x", folders)
    text = path.read_text()
    for part in ('"drafts/d.gguf"', '"$MODELS/e.gguf"', '"/other/f$$.gguf"'):
        assert part in text
    assert load("x", folders).profile.speculation.draft_models == drafts


@pytest.mark.parametrize(
    "text",
    [
        'server.model = "/m"\ntraffic.workload = "json"\nserver.context = 3\n',
        'server = {model = "/m", context = 3} # c\n[traffic]\nworkload = "json"\n',
        '[server]\r\nmodel = "/m"\r\ncontext = 3\r\n\r\n# t\r\n[traffic]\r\nworkload = "json"\r\n',
        '[server]\nmodel = "/m"\ncontext = 3\n[traffic]\nworkload = "json"',
        "[\"server\"]\n\"model\" = '''/m'''\ncontext = 3\n[ traffic ]\nworkload = \"json\" # c",
        '[traffic]\nworkload = "json"\n[server]\nmodel = "/m"\ncontext = 3\n# the end',
    ],
)
def test_other_layouts_of_the_same_profile_can_be_changed(folders: Folders, text: str) -> None:
    path = put(folders, text)
    profile = load("x", folders).profile
    assert (profile.server.model, profile.server.context, profile.traffic.workload) == ("/m", 3, "json")
    profile = profile.with_server(context=None, parallel=2).with_sampling(seed=9).with_traffic(warmup=0)
    save(replace(profile, description="d"), "x", folders)
    assert load("x", folders).profile == replace(profile, description="d")
    raw = path.read_bytes()
    if "\r\n" in text:
        assert raw.count(b"\n") == raw.count(b"\r\n")
    for comment in ("# c", "# t", "# the end"):
        assert comment not in text or comment.encode() in raw


def test_a_new_file_explains_itself(folders: Folders) -> None:
    profile = TuningProfile(description="mine").with_server(model="/m.gguf", context=0)
    saved = save(profile.with_speculation(mode="ngram-simple"), "x", folders)
    assert saved.path.read_text() == (
        "# A spectui profile. Keys that are left out have their defaults.\n"
        "schema_version = 1\n"
        'description = "mine"\n'
        "\n"
        "[server]\n"
        "# GGUF file of the target.\n"
        'model = "/m.gguf"\n'
        "# Context size in tokens, over all slots; leaving it out is the server's default, 0 the model's own.\n"
        "context = 0\n"
        "\n"
        "[speculation]\n"
        '# "off" or a speculation type in the field\'s current names, such as draft-simple or ngram-simple.\n'
        'mode = "ngram-simple"\n'
    )
    assert stat.S_IMODE(folders.profiles.stat().st_mode) == 0o700


def test_relative_names_are_taken_from_the_current_folder(
    folders: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    saved = save(TuningProfile().with_server(model="m.gguf", binary="llama-server"), "x", folders)
    assert saved.profile.server.model == str(tmp_path / "m.gguf")
    assert saved.profile.server.binary == "llama-server"
    assert load("x", folders) == saved


def test_a_path_saves_beside_the_users_profiles(folders: Folders, tmp_path: Path) -> None:
    saved = save(TuningProfile(description="d"), tmp_path / "y.toml", folders)
    assert saved.path == tmp_path / "y.toml"
    assert saved.name == "y"
    with pytest.raises(ProfileError, match=r"cannot be saved: No such file or directory"):
        save(TuningProfile(), tmp_path / "missing" / "y.toml", folders)


@pytest.mark.parametrize("text", ["[server\n", "[server]\nunknown = 1\n", "schema_version = 2\n", "\0"])
def test_what_is_no_readable_profile_is_not_overwritten(folders: Folders, text: str) -> None:
    path = put(folders, text)
    with pytest.raises(ProfileError, match="not saved, the file there cannot be read as a profile"):
        save(TuningProfile(), "x", folders)
    assert path.read_bytes() == text.encode()
    assert [each.name for each in folders.profiles.iterdir()] == ["x.toml"]


def test_a_shipped_example_is_not_changed_but_its_name_can_be_taken(tmp_path: Path) -> None:
    examples = tmp_path / "examples"
    examples.mkdir()
    (examples / "x.toml").write_text("")
    folders = replace(in_folder(tmp_path), examples=examples)
    with pytest.raises(ProfileError, match="is a shipped example; save under a name of your own"):
        save(TuningProfile(), examples / "x.toml", folders)
    assert save(TuningProfile(), "x", folders).path == folders.profiles / "x.toml"


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        (
            TuningProfile().with_server(extra_args=("--api-key", "sk-secret")),
            "server.extra_args: --api-key would",
        ),
        (
            TuningProfile().with_server(extra_args=("--api-key=sk-secret",)),
            "server.extra_args: --api-key would",
        ),
        (TuningProfile().with_server(url="http://me:sk-secret@host"), "server.url: would store a user name"),
        (TuningProfile().with_server(url="me:sk-secret@host:80"), "server.url: would store a user name"),
        (TuningProfile().with_server(api_key_env="sk-secret"), "server.api_key_env: not the name of"),
        (TuningProfile().with_speculation(draft_length=0), "speculation.draft_length: 0 is not allowed"),
        (
            TuningProfile().with_server(model="\udcff"),
            "server.model: holds a character that cannot be stored",
        ),
    ],
)
def test_nothing_is_written_that_must_not_be(folders: Folders, profile: TuningProfile, message: str) -> None:
    with pytest.raises(ProfileError) as caught:
        save(profile, "x", folders)
    assert message in str(caught.value)
    assert "secret" not in str(caught.value).replace("store a secret", "")
    assert not folders.profiles.exists()


def test_saves_at_the_same_time_do_not_tear(folders: Folders) -> None:
    put(folders, OLD)
    loaded = load("x", folders).profile
    profiles = [loaded.with_speculation(draft_length=k) for k in range(1, 5)]
    writers = [
        threading.Thread(target=lambda each=each: [save(each, "x", folders) for _ in range(5)])
        for each in profiles
    ]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        assert load("x", folders).profile in [loaded, *profiles]
    for writer in writers:
        writer.join()
    assert load("x", folders).profile in profiles
    assert [each.name for each in folders.profiles.iterdir()] == ["x.toml"]


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
SOME = TEXT.filter(bool)
PLAIN = st.text(string.ascii_letters + string.digits + " _-$~.'\"\\é\n", min_size=1, max_size=12)
FILE = PLAIN.map(lambda text: f"/{text}")
LAYERS = st.none() | st.integers(0, 10**6) | st.sampled_from(["auto", "all"])


def maybe(strategy: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.none() | strategy


PROFILES = st.builds(
    TuningProfile,
    description=TEXT,
    server=st.builds(
        ServerSettings,
        url=maybe(st.just("http://127.0.0.1:8080")),
        api_key_env=maybe(st.from_regex(r"[A-Z_][A-Z0-9_]{0,8}", fullmatch=True)),
        binary=maybe(FILE | st.just("llama-server")),
        model=maybe(FILE),
        context=maybe(st.integers(0, 2**31 - 1)),
        parallel=st.integers(1, 64),
        threads=maybe(st.integers(1, 512)),
        gpu_layers=LAYERS,
        device=maybe(SOME),
        split_mode=maybe(st.sampled_from(["none", "layer", "row", "tensor"])),
        flash_attention=maybe(st.sampled_from(["on", "off", "auto"])),
        cache_type_k=maybe(SOME),
        cache_type_v=maybe(SOME),
        port=maybe(st.integers(1, 65535)),
        extra_args=st.lists(TEXT.filter(lambda text: not text.startswith("-")), max_size=3).map(tuple),
        inherit_llama_env=st.booleans(),
        ready_timeout=st.floats(1, 1e300),
    ),
    speculation=st.builds(
        SpeculationSettings,
        mode=SOME,
        draft_model=maybe(FILE),
        draft_models=st.lists(FILE, max_size=3).map(tuple),
        draft_length=st.integers(1, 64),
        draft_min=st.integers(0, 64),
        p_min=st.floats(0, 1),
        draft_gpu_layers=LAYERS,
        draft_device=maybe(SOME),
        draft_cache_type_k=maybe(SOME),
        draft_cache_type_v=maybe(SOME),
        ngram_lookup=maybe(st.integers(1, 1024)),
        ngram_length=maybe(st.integers(1, 1024)),
        ngram_min_hits=maybe(st.integers(1, 99)),
    ),
    sampling=st.builds(SamplingSettings, temperature=st.floats(0, 5), seed=st.integers(0, 2**31 - 1)),
    traffic=st.builds(
        TrafficSettings,
        workload=SOME,
        prompts=maybe(FILE),
        max_tokens=st.integers(2, 100_000),
        concurrency=st.integers(1, 64),
        depth=st.integers(0, 1_000_000),
        warmup=st.integers(0, 100),
        ignore_eos=st.booleans(),
    ),
    baseline=st.builds(
        BaselineSettings, tokens_per_second=maybe(st.floats(0.001, 1e6)), url=maybe(st.just("http://b"))
    ),
)


@settings(max_examples=60, deadline=None)
@given(PROFILES)
def test_any_valid_profile_saves_and_loads_to_an_equal_one(profile: TuningProfile) -> None:
    with tempfile.TemporaryDirectory() as name:
        folders = in_folder(Path(name))
        saved = save(profile, "x", folders)
        assert saved.profile == profile
        assert load("x", folders) == saved


@settings(max_examples=60, deadline=None)
@given(
    PROFILES,
    st.sampled_from(["", "# c\n", "[server]\n# c\n[sampling]\nseed = 2 # c\n", OLD.replace("$MODELS", "")]),
)
def test_any_valid_profile_can_be_written_over_an_older_one(profile: TuningProfile, old: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folders = in_folder(Path(name))
        path = put(folders, old)
        save(profile, "x", folders)
        assert load("x", folders).profile == profile
        first = path.read_text()
        save(profile, "x", folders)
        assert path.read_text() == first
        assert old.count("# c\n") <= first.count("# c")
