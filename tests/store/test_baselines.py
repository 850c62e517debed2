from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path

import pytest

from spectui.errors import SpectuiError
from spectui.store.baselines import BaselineKey, BaselineStore, FileIdentity, StoredBaseline, hash_prompts

KEY = BaselineKey(
    build="b10434",
    binary=FileIdentity("/usr/bin/llama-server", 10, 1),
    model=FileIdentity("/m.gguf", 20, 1_700_000_000_123_456_789),
    argv=("llama-server", "-m", "/m.gguf", "--port", "8080"),
    workload="code",
    prompts_hash=hash_prompts(["a", "b"]),
    temperature=0.0,
    seed=1,
    concurrency=1,
    depth=0,
    max_tokens=200,
    ignore_eos=False,
    machine="box",
)
BASELINE = StoredBaseline(
    tokens_per_second=34.0, low=33.1, high=34.9, requests=12, tokens=2400, t1_ms=29.4, measured_at=1000.0
)


@pytest.fixture
def store(tmp_path: Path) -> BaselineStore:
    return BaselineStore(tmp_path / "cache" / "baselines.json", limit=5)


def test_what_was_put_is_got_by_another_run(store: BaselineStore, tmp_path: Path) -> None:
    assert store.get(KEY) is None
    assert store.all() == ()
    store.put(KEY, BASELINE)
    again = BaselineStore(tmp_path / "cache" / "baselines.json")
    assert again.get(KEY) == BASELINE
    assert again.all() == ((KEY, BASELINE),)


@pytest.mark.parametrize(
    "change",
    [
        {"build": None},
        {"binary": FileIdentity("/usr/bin/llama-server", 10, 2)},
        {"model": FileIdentity("/m.gguf", 21, 1_700_000_000_123_456_789)},
        {"argv": ("llama-server", "-m", "/m.gguf", "-np", "2")},
        {"workload": "prose"},
        {"prompts_hash": hash_prompts(["b", "a"])},
        {"temperature": 0.1},
        {"seed": 2},
        {"concurrency": 2},
        {"depth": 1},
        {"max_tokens": 100},
        {"ignore_eos": True},
        {"machine": "other"},
    ],
)
def test_every_condition_counts(store: BaselineStore, change: dict[str, object]) -> None:
    store.put(KEY, BASELINE)
    other = replace(KEY, **change)  # type: ignore[arg-type]
    assert store.get(other) is None
    assert other.digest != KEY.digest


def test_the_port_does_not_count_and_a_key_is_not_kept(store: BaselineStore, tmp_path: Path) -> None:
    other = replace(KEY, argv=("llama-server", "-m", "/m.gguf", "--port=9", "--api-key", "sk-secret"))
    assert other == KEY
    assert other.digest == KEY.digest
    token = ("--hf-token", "hf-secret", "-hft", "hf-secret", "--hf_token=hf-secret")
    assert replace(KEY, argv=(*KEY.argv, *token)) == KEY
    store.put(replace(KEY, argv=("--api-key=sk-secret", "--api-key", "sk-secret", *token)), BASELINE)
    assert "secret" not in (tmp_path / "cache" / "baselines.json").read_text()


def test_the_digest_is_the_same_everywhere() -> None:
    assert KEY.digest == "607c4282f2af0863d43d7fe5fc8f74dda01d3dbcb0a698e26c9542ef1f0ada80"
    assert replace(KEY, temperature=0).digest == KEY.digest


def test_a_newer_baseline_replaces_and_the_oldest_go(store: BaselineStore) -> None:
    store.put(KEY, BASELINE)
    store.put(KEY, replace(BASELINE, tokens_per_second=40.0))
    assert [baseline.tokens_per_second for _, baseline in store.all()] == [40.0]
    for seed in range(2, 9):
        store.put(replace(KEY, seed=seed), replace(BASELINE, measured_at=1000.0 + seed))
    assert [key.seed for key, _ in store.all()] == [8, 7, 6, 5, 4]
    store.put(replace(KEY, seed=99), replace(BASELINE, measured_at=0.0))
    assert store.get(replace(KEY, seed=99)) is not None


@pytest.mark.parametrize(
    "junk",
    [
        b"",
        b"\xff\x00",
        b"{",
        b"[]",
        b'{"version": 2, "entries": []}',
        b'{"version": 1, "entries": [{"key": {}, "baseline": {}}]}',
    ],
)
def test_a_file_that_cannot_be_understood_is_kept_aside(
    store: BaselineStore, tmp_path: Path, junk: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "cache" / "baselines.json"
    file.parent.mkdir()
    file.write_bytes(junk)
    with caplog.at_level(logging.WARNING):
        assert store.get(KEY) is None
    assert "baselines start anew" in caplog.text
    assert file.with_name("baselines.json.unreadable").read_bytes() == junk
    store.put(KEY, BASELINE)
    assert store.get(KEY) == BASELINE


@pytest.mark.parametrize("speed", [0, -1, 1e999])
def test_impossible_numbers_are_not_believed(store: BaselineStore, tmp_path: Path, speed: float) -> None:
    store.put(KEY, BASELINE)
    file = tmp_path / "cache" / "baselines.json"
    content = json.loads(file.read_text())
    content["entries"][0]["baseline"]["tokens_per_second"] = speed
    file.write_text(json.dumps(content))
    assert store.get(KEY) is None


def test_a_cache_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = BaselineStore(tmp_path / "file" / "baselines.json")
    with pytest.raises(SpectuiError, match="the baseline cannot be remembered: "):
        store.put(KEY, BASELINE)


def test_the_identity_of_a_file_follows_links_and_changes(tmp_path: Path) -> None:
    file, link = tmp_path / "m.gguf", tmp_path / "link.gguf"
    file.write_bytes(b"abc")
    link.symlink_to(file)
    before = FileIdentity.of(link)
    assert before == FileIdentity(str(file.resolve()), 3, file.stat().st_mtime_ns)
    file.write_bytes(b"abcd")
    assert FileIdentity.of(file) != before
    with pytest.raises(FileNotFoundError):
        FileIdentity.of(tmp_path / "missing")
