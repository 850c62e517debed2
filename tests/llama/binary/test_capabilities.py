from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectui.llama.binary.capabilities import Capabilities, current_type, normalise, parse_help, parse_version

HELP = Path(__file__).parents[2] / "data" / "help"
NGRAM_MODES = ("ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod", "ngram-cache")

B7864 = """----- common params -----

-m,    --model FNAME                    model path to load
--spec-type [none|ngram-cache|ngram-simple|ngram-map-k|ngram-map-k4v]
                                        type of speculative decoding to use when no draft model is provided
                                        (default: none)
-md,   --model-draft FNAME              draft model for speculative decoding (default: unused)
--draft-max, --draft, --draft-n N       number of tokens to draft for speculative decoding (default: 16)
                                        (env: LLAMA_ARG_DRAFT_MAX)
"""
B9109 = """-m,    --model FNAME                    model path to load
--spec-type none,draft,eagle3,ngram_simple,ngram_mod
                                        comma-separated list of types of speculative decoding to use (default:
                                        none)
-md,   --model-draft FNAME              draft model for speculative decoding (default: unused)
--spec-draft-n-max N                    number of tokens to draft (default: 16)
"""


def caps_of(name: str) -> Capabilities:
    return parse_help((HELP / f"{name}.txt").read_text())


def test_current_binary_offers_every_type_it_lists() -> None:
    caps = caps_of("b10434")
    drafts = ("draft-simple", "draft-eagle3", "draft-mtp", "draft-dflash", "draft-dspark")
    assert caps.speculation_types == (*drafts, *NGRAM_MODES)
    assert caps.modes == ("off", *drafts, *NGRAM_MODES)
    assert "draft-dspark" not in caps_of("b10068").modes
    assert len(caps.flags) == 248


def test_old_binary_without_types_drafts_with_a_model() -> None:
    caps = caps_of("b6xxx")
    assert caps.speculation_types == ()
    assert caps.modes == ("off", "draft-simple")
    assert caps.type_name("draft-simple") is None


def test_types_of_the_ngram_era_leave_drafting_to_the_model_flag() -> None:
    caps = parse_help(B7864)
    assert caps.modes == (
        "off",
        "draft-simple",
        "ngram-cache",
        "ngram-simple",
        "ngram-map-k",
        "ngram-map-k4v",
    )
    assert caps.type_name("draft-simple") is None
    assert caps.type_name("ngram-simple") == "ngram-simple"


def test_old_type_names_are_translated_both_ways() -> None:
    caps = parse_help(B9109)
    assert caps.modes == ("off", "draft-simple", "draft-eagle3", "ngram-simple", "ngram-mod")
    assert caps.type_name("draft-simple") == "draft"
    assert caps.type_name("ngram-mod") == "ngram_mod"
    assert current_type("mtp") == "draft-mtp"


def test_types_named_only_in_the_text_are_found() -> None:
    caps = parse_help(
        "--spec-type TYPE                        one of: none, mtp, ngram-mod (default: none)\n"
    )
    assert caps.modes == ("off", "draft-mtp", "ngram-mod")


def test_nothing_to_speculate_with_leaves_off_alone() -> None:
    assert parse_help("-m,    --model FNAME                    model path\n").modes == ("off",)


@pytest.mark.parametrize("flag", ["--draft-max", "--draft", "--draft-n-min", "--spec-ngram-size-n"])
def test_removed_flags_are_absent_though_listed(flag: str) -> None:
    caps = caps_of("b10434")
    assert caps.flag(flag) is not None
    assert not caps.accepts(flag)
    assert caps.accepts(caps.nearest(flag) or "")


def test_removed_flag_says_what_to_use() -> None:
    caps = caps_of("b10434")
    assert caps.removed_advice("--draft-max") == "use --spec-draft-n-max or --spec-ngram-mod-n-max"
    assert caps.removed_advice("--spec-draft-n-max") is None
    assert caps.removed_advice("--never-was") is None
    assert caps.nearest("--spec-ngram-size-n") == "--spec-ngram-simple-size-n"


@pytest.mark.parametrize(
    ("era", "flag", "nearest"),
    [
        ("b10434", "--draft-max", "--spec-draft-n-max"),
        ("b10434", "--draft_max", "--spec-draft-n-max"),
        ("b10434", "--draft-model", "--spec-draft-model"),
        ("b10434", "--spec-draft-conf-min", "--spec-draft-p-min"),
        ("b10434", "--metrix", "--metrics"),
        ("b10434", "-cd", None),
        ("b10434", "--spec-replace", None),
        ("b10434", "--entirely-unlike-anything", None),
        ("b6xxx", "--spec-draft-n-max", "--draft-max"),
        ("b6xxx", "--spec-draft-model", "--model-draft"),
        ("b6xxx", "-ngld", "-ngld"),
    ],
)
def test_nearest_flag(era: str, flag: str, nearest: str | None) -> None:
    assert caps_of(era).nearest(flag) == nearest


def test_underscores_in_long_options_count_as_hyphens() -> None:
    caps = caps_of("b10434")
    assert caps.accepts("--spec_draft_n_max")
    assert normalise("-md_x") == "-md_x"
    assert caps.first_of("--draft-max", "--spec_draft_n_max", "-md") == "--spec_draft_n_max"
    assert caps.first_of("--draft-max") is None


def test_flag_details() -> None:
    caps = caps_of("b10434")
    flash = caps.flag("-fa")
    assert flash is not None
    assert flash.values == ("on", "off", "auto")
    assert flash.default == "auto"
    assert flash.env == ("LLAMA_ARG_FLASH_ATTN",)
    cache = caps.flag("--cache-type-k-draft")
    assert cache is not None
    assert cache.values[:3] == ("f32", "f16", "bf16")
    assert cache.env == ("LLAMA_ARG_SPEC_DRAFT_CACHE_TYPE_K",)
    tensors = caps.flag("-otd")
    assert tensors is not None
    assert tensors.hint == "<tensor name pattern>=<buffer type>,..."
    assert tensors.text == "override tensor buffer type for draft model"
    device = caps.flag("--device")
    assert device is not None
    assert device.values == ()


def test_value_counts() -> None:
    old, new = caps_of("b6xxx"), caps_of("b10434")
    counts = [
        f.value_count
        for f in (
            old.flag("--spec-replace"),
            old.flag("-fa"),
            new.flag("-fa"),
            new.flag("--slots"),
            new.flag("-ts"),
        )
        if f is not None
    ]
    assert counts == [2, 0, 1, 0, 1]


def test_both_spellings_of_a_switch() -> None:
    caps = caps_of("b10434")
    slots = caps.flag("--no-slots")
    assert slots is not None
    assert slots.spellings == ("--slots", "--no-slots")


@pytest.mark.parametrize("era", ["b6xxx", "b10068", "b10434"])
def test_no_flag_is_lost_or_left_unexplained(era: str) -> None:
    text = (HELP / f"{era}.txt").read_text()
    caps = parse_help(text)
    headers = [line for line in text.splitlines() if line.startswith("-") and not line.startswith("-----")]
    assert len(caps.flags) == len(headers)
    assert all(flag.text for flag in caps.flags)
    assert all("(env:" not in flag.text for flag in caps.flags)
    for flag, header in zip(caps.flags, headers, strict=True):
        assert all(spelling in header for spelling in flag.spellings)


@pytest.mark.parametrize(
    ("text", "build", "commit", "label"),
    [
        ("version: 5142 (80f19b41)\nbuilt with cc for x86_64-linux-gnu\n", 5142, "80f19b41", "b5142"),
        ("version: 0.1.0-dev (build 1, commit 7e4c0a9)\nbuilt with GNU\n", 1, "7e4c0a9", "b1"),
        ("version: 0.3.0-dev (build 10741, commit 9d817213a)", 10741, "9d817213a", "b10741"),
        ("version: custom\n", None, None, "custom"),
        ("nothing of the kind", None, None, None),
    ],
)
def test_versions(text: str, build: int | None, commit: str | None, label: str | None) -> None:
    version = parse_version(text)
    assert (version.build, version.commit, version.label) == (build, commit, label)


@given(st.text())
def test_any_text_is_read_without_error(text: str) -> None:
    caps = parse_help(text)
    assert caps.modes[0] == "off"
    assert all(flag.spellings for flag in caps.flags)
    parse_version(text)
