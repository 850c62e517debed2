"""What llama.cpp's library says about model files: facts of a GGUF file, and whether a draft fits a target.

Kept apart because llama.cpp can abort or hang on a foreign file and takes memory: the library is loaded only in a
worker process, which is this module run as a script. The rest of spectui asks through the functions here.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from spectui.core.text import one_line
from spectui.errors import ModelFileError
from spectui.llama.models.facts_cache import FactsCache, file_key
from spectui.llama.models.vocabulary import Compatibility, SpecialToken, Vocabulary, compare_vocabularies
from spectui.llama.models.worker import run_worker

READ_SECONDS: Final = 30.0
"""How long a worker may take before it counts as hung; a file takes some 0.1 s from a warm disk."""
MAX_FILES: Final = 200
"""Most files of a folder that are offered."""

_SPLIT: Final = re.compile(r"^(?P<stem>.+)-(?P<part>\d{5})-of-(?P<parts>\d{5})\.gguf$", re.IGNORECASE)
_MAGIC: Final = b"GGUF"
_ERROR_LEVEL: Final = 4
"""GGML_LOG_LEVEL_ERROR."""
_ERROR_PREFIX: Final = re.compile(r"^\w+: (error loading model: )?")
_KINDS: Final = {0: "none", 1: "SPM", 2: "BPE", 3: "WPM", 4: "UGM", 5: "RWKV", 6: "PLaMo-2"}
"""llama_vocab_type in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What a GGUF file says about itself; None where it does not."""

    size_bytes: int
    """Size on disk, all parts of a split file together."""
    architecture: str | None = None
    name: str | None = None
    quantisation: str | None = None
    """Main type of the tensors, such as Q4_K_M or F16."""
    blocks: int | None = None
    """Layers."""
    vocabulary: int | None = None
    """Tokens of the vocabulary."""
    context_train: int | None = None
    """Context that the model was trained for, in tokens."""
    parameters: int | None = None


@dataclass(frozen=True, slots=True)
class ModelProblem:
    """Why a file cannot be read as a model, one line."""

    message: str


@dataclass(frozen=True, slots=True)
class DraftCheck:
    """One draft against a target."""

    path: Path
    facts: ModelFacts | ModelProblem
    compatibility: Compatibility


@dataclass(frozen=True, slots=True)
class DraftChecks:
    """A target and its drafts, in the order asked."""

    target: ModelFacts | ModelProblem
    drafts: tuple[DraftCheck, ...]


_Answer = ModelFacts | ModelProblem | Compatibility
_Answers = dict[str, _Answer]
_ANSWER: Final[TypeAdapter[_Answer]] = TypeAdapter(_Answer)


def scan_folder(folder: Path, limit: int = MAX_FILES) -> list[Path]:
    """Model files of a folder by name, at most `limit`: of split files the first part, no projectors (mmproj).

    Empty where the folder cannot be read.
    """
    try:
        names = sorted(entry.name for entry in folder.iterdir() if entry.suffix.lower() == ".gguf")
    except OSError:
        return []
    return [folder / name for name in names if _offered(name) and (folder / name).is_file()][:limit]


def _offered(name: str) -> bool:
    split = _SPLIT.match(name)
    return (
        "mmproj" not in name.lower()
        and not name.startswith(".")
        and (split is None or int(split["part"]) == 1)
    )


async def read_facts(
    paths: Sequence[Path], *, cache_dir: Path | None, seconds: float = READ_SECONDS
) -> dict[Path, ModelFacts | ModelProblem]:
    """Facts of each file. Never raises for a file: what cannot be read is a ModelProblem."""
    answers = await _answers(None, paths, cache_dir, seconds)
    return {path: _facts(path, answers) for path in paths}


async def compare(
    target: Path, drafts: Sequence[Path], *, cache_dir: Path | None, seconds: float = READ_SECONDS
) -> DraftChecks:
    """Facts of all files, and whether a server would speculate with each draft; one worker reads them all.

    Never raises for a file: what cannot be read is a ModelProblem, and its compatibility None.
    """
    answers = await _answers(target, drafts, cache_dir, seconds)
    facts = _facts(target, answers)
    checks = []
    for draft in drafts:
        found = _facts(draft, answers)
        fit = answers.get(_pair_name(target, draft))
        if not isinstance(fit, Compatibility):
            problems = [f.message for f in (facts, found) if isinstance(f, ModelProblem)]
            fit = Compatibility(None, problems[0] if problems else f"{draft.name} was not compared")
        checks.append(DraftCheck(draft, found, fit))
    return DraftChecks(facts, tuple(checks))


def _facts(path: Path, answers: _Answers) -> ModelFacts | ModelProblem:
    answer = answers.get(str(path))
    return (
        answer if isinstance(answer, ModelFacts | ModelProblem) else ModelProblem(f"{path.name} was not read")
    )


def _pair_name(target: Path, draft: Path) -> str:
    """Name of the answer on two files; no path holds a zero byte."""
    return f"{target}\0{draft}"


async def _answers(
    target: Path | None, paths: Sequence[Path], cache_dir: Path | None, seconds: float
) -> _Answers:
    """Answers by path, and by pair of paths: from the cache where the files are the same, else from a worker."""
    cache = FactsCache(cache_dir)
    keys, remembered = await asyncio.to_thread(lambda: (_keys(target, paths), cache.read()))
    answers: _Answers = {}
    for name, key in keys.items():
        answer = _parsed(remembered.get(key))
        if answer is not None:
            answers[name] = answer
    missing = [
        path
        for path in dict.fromkeys(paths)
        if str(path) not in answers or (target is not None and _pair_name(target, path) not in answers)
    ]
    if missing or (target is not None and str(target) not in answers):
        found = await _ask(target, missing, seconds)
        answers |= found
        lasting = {name: answer for name, answer in found.items() if not isinstance(answer, ModelProblem)}
        fresh = [(keys[name], asdict(answer)) for name, answer in lasting.items() if name in keys]
        await asyncio.to_thread(cache.add, fresh)
    return answers


def _keys(target: Path | None, paths: Sequence[Path]) -> dict[str, str]:
    """Name of each answer -> what it depends on; files that are not there have none."""
    keys = {}
    for path in (*paths, *([] if target is None else [target])):
        with suppress(OSError):
            keys[str(path)] = file_key(path)
    if target is not None and str(target) in keys:
        for path in paths:
            if str(path) in keys:
                keys[_pair_name(target, path)] = f"{keys[str(target)]} {keys[str(path)]}"
    return keys


def _parsed(value: object) -> _Answer | None:
    """An answer that a worker or the cache gave; None where it is none."""
    try:
        return _ANSWER.validate_python(value)
    except ValidationError:
        return None


async def _ask(target: Path | None, paths: Sequence[Path], seconds: float) -> _Answers:
    """Have workers read the files. One that crashes or hangs costs its file; the next reads the others."""
    found: _Answers = {}
    rest = [path for path in paths if path != target]
    while True:
        culprit, reason = await _read(target, rest, seconds, found)
        if reason is None:
            return found
        for name in [culprit] if culprit is not None else map(str, rest):
            found[name] = ModelProblem(f"{Path(name).name} cannot be read: {reason}")
        if target is not None and culprit in {None, str(target)}:
            found.setdefault(str(target), ModelProblem(f"{target.name} cannot be read: {reason}"))
            target = None
        rest = [path for path in rest if str(path) not in found]
        if not rest:
            return found


async def _read(
    target: Path | None, paths: Sequence[Path], seconds: float, found: _Answers
) -> tuple[str | None, str | None]:
    """Run one worker, adding to `found`. Returns the file it broke on, if any, and why; (None, None) for none."""
    begun: str | None = None

    def take(message: dict[str, Any]) -> None:
        nonlocal begun
        name, answer = str(message.get("name")), _parsed(message.get("answer"))
        if answer is None:
            begun = name
        else:
            found[name] = answer

    arguments = ["" if target is None else str(target), *map(str, paths)]
    try:
        end = await run_worker(__name__, arguments, on_object=take, seconds=seconds)
    except OSError as error:
        return None, f"no process can be started: {error.strerror or error}"
    return (None, None) if end.status == 0 else (begun, end.reason)


class _Library:
    """llama.cpp's library in this process, its messages kept instead of printed."""

    def __init__(self) -> None:
        from llama_cpp import llama_cpp  # noqa: PLC0415  workers only

        self._api: Any = llama_cpp
        self._errors: list[str] = []
        # The library keeps only the pointer, so the callback must live as long as this object.
        self._callback = llama_cpp.llama_log_callback(self._log)
        llama_cpp.llama_log_set(self._callback, None)
        llama_cpp.llama_backend_init()
        prefix = "LLAMA_FTYPE_"
        self._types = {
            str(value): name.removeprefix(prefix).removeprefix("MOSTLY_").removeprefix("ALL_")
            for name, value in vars(llama_cpp).items()
            if name.startswith(prefix)
        }

    @contextmanager
    def model(self, path: Path) -> Iterator[Any]:
        """The file's metadata and tokenizer, without its tensors. Raises ModelFileError."""
        _check_file(path)
        parameters = self._api.llama_model_default_params()
        parameters.vocab_only = True
        self._errors.clear()
        model = self._api.llama_model_load_from_file(os.fsencode(path), parameters)
        if not model:
            reason = _ERROR_PREFIX.sub("", self._errors[0]) if self._errors else "llama.cpp gives no reason"
            raise ModelFileError(f"{path.name} cannot be loaded: {one_line(reason, 200)}")
        try:
            yield model
        finally:
            self._api.llama_model_free(model)

    def facts(self, path: Path, model: Any) -> ModelFacts:
        """Facts of a loaded file."""
        architecture = self._text(model, "general.architecture")
        parameters = int(self._api.llama_model_n_params(model))
        return ModelFacts(
            size_bytes=sum(part.stat().st_size for part in _parts(path)),
            architecture=architecture,
            name=self._text(model, "general.name"),
            quantisation=self._types.get(self._text(model, "general.file_type") or ""),
            blocks=self._number(model, f"{architecture}.block_count"),
            vocabulary=int(self._api.llama_vocab_n_tokens(self._api.llama_model_get_vocab(model))),
            context_train=self._number(model, f"{architecture}.context_length"),
            parameters=parameters or None,
        )

    def vocabulary(self, model: Any) -> Vocabulary:
        """Tokenizer of a loaded file."""
        api = self._api
        vocab = api.llama_model_get_vocab(model)
        return Vocabulary(
            kind=_KINDS.get(api.llama_vocab_type(vocab), str(api.llama_vocab_type(vocab))),
            begin=SpecialToken(bool(api.llama_vocab_get_add_bos(vocab)), int(api.llama_vocab_bos(vocab))),
            end=SpecialToken(bool(api.llama_vocab_get_add_eos(vocab)), int(api.llama_vocab_eos(vocab))),
            texts=[
                api.llama_vocab_get_text(vocab, token) for token in range(api.llama_vocab_n_tokens(vocab))
            ],
        )

    def _text(self, model: Any, key: str) -> str | None:
        buffer = ctypes.create_string_buffer(512)
        length = self._api.llama_model_meta_val_str(model, key.encode(), buffer, len(buffer))
        return one_line(buffer.value.decode(errors="replace"), 200) if length >= 0 else None

    def _number(self, model: Any, key: str) -> int | None:
        text = self._text(model, key)
        return int(text) if text is not None and text.isdecimal() else None

    def _log(self, level: int, text: bytes, _user_data: object) -> None:
        if level == _ERROR_LEVEL:
            self._errors.append(text.decode(errors="replace").strip())


def _check_file(path: Path) -> None:
    """What can be said without the library, and better. Raises ModelFileError."""
    try:
        if not path.is_file():
            raise ModelFileError(f"{path.name} is no file" if path.exists() else f"there is no file {path}")
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
    except OSError as error:
        raise ModelFileError(f"{path.name} cannot be read: {error.strerror}") from error
    if magic != _MAGIC:
        raise ModelFileError(f"{path.name} is no GGUF model file")


def _parts(path: Path) -> list[Path]:
    """All files of a split model; the file itself otherwise."""
    split = _SPLIT.match(path.name)
    if split is None:
        return [path]
    names = [f"{split['stem']}-{n:05}-of-{split['parts']}.gguf" for n in range(1, int(split["parts"]) + 1)]
    return [path.with_name(name) for name in names if path.with_name(name).is_file()]


def _say(name: str, answer: _Answer | None) -> None:
    sys.stdout.write(json.dumps({"name": name, "answer": None if answer is None else asdict(answer)}) + "\n")
    sys.stdout.flush()


def _worker(target: Path | None, paths: Sequence[Path]) -> None:
    """Read the target, if there is one, and each file: say what is begun before, and what it is after."""
    library = _Library()
    ours: Vocabulary | None = None
    for path in (*([] if target is None else [target]), *paths):
        _say(str(path), None)
        try:
            with library.model(path) as model:
                _say(str(path), library.facts(path, model))
                if path == target:
                    ours = library.vocabulary(model)
                if target is not None and ours is not None:
                    _say(_pair_name(target, path), compare_vocabularies(ours, library.vocabulary(model)))
        except ModelFileError as error:
            _say(str(path), ModelProblem(str(error)))


if __name__ == "__main__":
    _worker(Path(sys.argv[1]) if sys.argv[1] else None, [Path(name) for name in sys.argv[2:]])
