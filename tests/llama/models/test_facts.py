from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spectui.lab.demo import DemoPair
from spectui.llama.models import facts
from spectui.llama.models.facts import ModelFacts, ModelProblem, compare, read_facts, scan_folder
from spectui.llama.models.facts_cache import FILE_NAME, MAX_ENTRIES, FactsCache
from spectui.llama.models.vocabulary import Compatibility
from spectui.llama.models.worker import WorkerEnd
from tests.harness import DEMO_TEST_BLOCKS


class Workers:
    """Stands in for worker processes: what each one says, in turn, and how it ends."""

    def __init__(self, *scripts: tuple[list[dict[str, Any]], int | None]) -> None:
        self.scripts = list(scripts)
        self.calls: list[list[str]] = []

    async def __call__(
        self, module: str, arguments: list[str], *, on_object: Any, seconds: float
    ) -> WorkerEnd:
        self.calls.append(arguments)
        said, status = self.scripts.pop(0)
        for line in said:
            on_object(line)
        return WorkerEnd(0, status, "")


def says(path: Path, **answer: Any) -> list[dict[str, Any]]:
    return [{"name": str(path), "answer": None}, {"name": str(path), "answer": answer or {"size_bytes": 1}}]


def fits(target: Path, draft: Path) -> dict[str, Any]:
    return {"name": f"{target}\0{draft}", "answer": {"compatible": True, "reason": None}}


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / name for name in ("target.gguf", "a.gguf", "b.gguf")]
    for path in paths:
        path.write_bytes(b"GGUF")
    return paths


def test_importing_loads_no_library() -> None:
    code = "import sys, spectui.llama.models.facts; print({'llama_cpp', 'numpy', 'gguf'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout.strip() == "set()"


async def test_facts_of_real_files(demo_pair: DemoPair) -> None:
    facts = await read_facts([demo_pair.target, demo_pair.drafts[1]], cache_dir=None)
    assert facts[demo_pair.target] == ModelFacts(
        size_bytes=demo_pair.target.stat().st_size,
        architecture="llama",
        name=f"SmolLM2-135M padded to {DEMO_TEST_BLOCKS} blocks",
        quantisation="F16",
        blocks=DEMO_TEST_BLOCKS,
        vocabulary=49152,
        context_train=8192,
        parameters=49152 * 576 + DEMO_TEST_BLOCKS * (3_538_944 + 2 * 576) + 576,
    )
    draft = facts[demo_pair.drafts[1]]
    assert isinstance(draft, ModelFacts)
    assert (draft.blocks, draft.name) == (24, "SmolLM2-135M with 24 of 30 blocks")


async def test_a_real_pair_and_one_with_a_changed_token(
    demo_pair: DemoPair, mismatched_draft: Path, tmp_path: Path
) -> None:
    drafts = [*demo_pair.drafts, mismatched_draft, demo_pair.target]
    comparison = await compare(demo_pair.target, drafts, cache_dir=tmp_path)
    assert isinstance(comparison.target, ModelFacts)
    assert [check.path for check in comparison.drafts] == drafts
    assert [check.compatibility for check in comparison.drafts] == [
        Compatibility(compatible=True),
        Compatibility(compatible=True),
        Compatibility(compatible=False, reason="token 1517 differs: target ' function', draft ' functiox'"),
        Compatibility(compatible=True),
    ]


async def test_bad_files_are_problems_with_reasons(demo_pair: DemoPair, tmp_path: Path) -> None:
    with demo_pair.drafts[1].open("rb") as whole:
        start = whole.read(3_000_000)
    contents = {
        "short.gguf": start,
        "cut.gguf": start[:1000],
        "text.gguf": b"hello world",
        "empty.gguf": b"",
        "huge.gguf": b"GGUF\x03\0\0\0" + b"\xff" * 16 + b"\0" * 64,
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    names = [*contents, "missing.gguf", "."]
    comparison = await compare(demo_pair.target, [tmp_path / name for name in names], cache_dir=None)
    problems = {}
    for name, check in zip(names, comparison.drafts, strict=True):
        assert isinstance(check.facts, ModelProblem), name
        assert check.compatibility == Compatibility(compatible=None, reason=check.facts.message)
        problems[name] = check.facts.message
    assert "data is not within the file bounds" in problems["short.gguf"]
    assert problems["cut.gguf"].startswith("cut.gguf cannot be loaded: ")
    assert problems["text.gguf"] == "text.gguf is no GGUF model file"
    assert problems["empty.gguf"] == "empty.gguf is no GGUF model file"
    assert problems["huge.gguf"].startswith("huge.gguf cannot be ")
    assert problems["missing.gguf"] == f"there is no file {tmp_path / 'missing.gguf'}"
    assert problems["."] == f"{tmp_path.name} is no file"


async def test_a_target_that_cannot_be_read_leaves_the_drafts_facts(
    demo_pair: DemoPair, tmp_path: Path
) -> None:
    comparison = await compare(tmp_path / "none.gguf", demo_pair.drafts[1:], cache_dir=None)
    assert comparison.target == ModelProblem(f"there is no file {tmp_path / 'none.gguf'}")
    assert isinstance(comparison.drafts[0].facts, ModelFacts)
    assert comparison.drafts[0].compatibility.compatible is None
    assert comparison.drafts[0].compatibility.reason == comparison.target.message


async def test_unchanged_files_are_read_once(
    files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, a, b = files
    workers = Workers(
        ([*says(target), *says(a), fits(target, a)], 0),
        ([*says(target), *says(b), fits(target, b)], 0),
        ([*says(target), *says(a, size_bytes=2), fits(target, a)], 0),
    )
    monkeypatch.setattr(facts, "run_worker", workers)
    cache = tmp_path / "cache"
    first = await compare(target, [a], cache_dir=cache)
    assert await compare(target, [a], cache_dir=cache) == first
    assert len(workers.calls) == 1
    both = await compare(target, [a, b], cache_dir=cache)
    assert workers.calls[1] == [str(target), str(b)]
    assert [check.compatibility.compatible for check in both.drafts] == [True, True]
    a.write_bytes(b"GGUF changed")
    changed = await compare(target, [a], cache_dir=cache)
    assert workers.calls[2] == [str(target), str(a)]
    assert changed.drafts[0].facts == ModelFacts(size_bytes=2)
    assert (await read_facts([a, b], cache_dir=cache))[b] == ModelFacts(size_bytes=1)
    assert len(workers.calls) == 3


@pytest.mark.parametrize(
    ("status", "reason"), [(-6, "it crashed with SIGABRT"), (None, "it took too long"), (1, "exit status 1")]
)
async def test_a_file_that_breaks_the_worker_costs_only_itself(
    files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int | None, reason: str
) -> None:
    target, a, b = files
    workers = Workers(
        ([*says(target), {"name": str(a), "answer": None}], status),
        ([*says(target), *says(b), fits(target, b)], 0),
        ([*says(target), *says(a), fits(target, a)], 0),
    )
    monkeypatch.setattr(facts, "run_worker", workers)
    comparison = await compare(target, [a, b], cache_dir=tmp_path)
    assert workers.calls == [[str(target), str(a), str(b)], [str(target), str(b)]]
    assert isinstance(comparison.drafts[0].facts, ModelProblem)
    assert comparison.drafts[0].facts.message.startswith("a.gguf cannot be read: ")
    assert comparison.drafts[0].facts.message.endswith(reason)
    assert comparison.drafts[1].compatibility == Compatibility(compatible=True)
    again = await compare(target, [a, b], cache_dir=tmp_path)
    assert again.drafts[0].compatibility == Compatibility(compatible=True)


async def test_a_target_that_breaks_the_worker(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    target, a, b = files
    workers = Workers(([{"name": str(target), "answer": None}], -11), ([*says(a), *says(b)], 0))
    monkeypatch.setattr(facts, "run_worker", workers)
    comparison = await compare(target, [a, b], cache_dir=None)
    assert workers.calls == [[str(target), str(a), str(b)], ["", str(a), str(b)]]
    assert comparison.target == ModelProblem("target.gguf cannot be read: it crashed with SIGSEGV")
    assert [check.facts for check in comparison.drafts] == [ModelFacts(size_bytes=1)] * 2


async def test_a_worker_that_cannot_even_start(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    workers = Workers(([], 1))
    monkeypatch.setattr(facts, "run_worker", workers)
    comparison = await compare(files[0], files[1:], cache_dir=None)
    assert len(workers.calls) == 1
    assert comparison.target == ModelProblem("target.gguf cannot be read: it ended with exit status 1")
    assert all(isinstance(check.facts, ModelProblem) for check in comparison.drafts)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        "[]",
        '{"version": 99, "answers": {}}',
        '{"version": 1, "answers": 3}',
        '{"version": 1, "answers": {"KEY": {"size_bytes": "many"}}}',
        '{"version": 1, "answers": {"KEY": null}}',
        "[" * 100_000,
    ],
)
async def test_a_damaged_cache_is_an_empty_one(
    text: str, files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stat = files[1].stat()
    key = f"{files[1]}|{stat.st_size}|{stat.st_mtime_ns}"
    (tmp_path / FILE_NAME).write_text(text.replace("KEY", key))
    monkeypatch.setattr(facts, "run_worker", Workers((says(files[1]), 0)))
    assert await read_facts([files[1]], cache_dir=tmp_path) == {files[1]: ModelFacts(size_bytes=1)}
    assert key in json.loads((tmp_path / FILE_NAME).read_text())["answers"]


def test_the_cache_is_bounded_and_a_folder_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    cache = FactsCache(tmp_path)
    cache.add((str(n), {"size_bytes": n}) for n in range(MAX_ENTRIES + 5))
    assert list(cache.read()) == [str(n) for n in range(5, MAX_ENTRIES + 5)]
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]
    blocked = FactsCache(tmp_path / FILE_NAME / "below")
    blocked.add([("a", {})])
    assert blocked.read() == {}


def test_scan_offers_models_only(tmp_path: Path) -> None:
    for name in (
        "b.gguf",
        "a.GGUF",
        "big-00001-of-00002.gguf",
        "big-00002-of-00002.gguf",
        "mmproj-b.gguf",
        "b-mmproj-f16.gguf",
        ".hidden.gguf",
        "note.txt",
    ):
        (tmp_path / name).touch()
    (tmp_path / "folder.gguf").mkdir()
    assert [path.name for path in scan_folder(tmp_path)] == ["a.GGUF", "b.gguf", "big-00001-of-00002.gguf"]
    assert len(scan_folder(tmp_path, limit=2)) == 2
    assert scan_folder(tmp_path / "nowhere") == []
