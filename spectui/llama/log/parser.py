"""A line of a llama-server's log, of any era, as an event.

One table of rows (a literal that must occur, a pattern, what it makes). Thousands of lines arrive at verbosity 4
and nearly all mean nothing here, so the literals are looked for first and the patterns rarely run. The lines
themselves are listed by build in llama.cpp's history; texts changed, the literals are what they have in common.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Final

from spectui.core.text import without_escapes
from spectui.llama.binary.capabilities import current_type
from spectui.llama.log.events import (
    GENERIC_FAILURE,
    Acceptance,
    BufferPlaced,
    BuildInfo,
    DeviceFound,
    Event,
    Generated,
    LayersOffloaded,
    Listening,
    LoadProgress,
    LogFailure,
    ModelLoaded,
    PassTrace,
    PromptRead,
    Role,
    SpeculationInit,
    SpeculationOff,
    Statistics,
)

_PREFIX: Final = re.compile(r"^\d+[.:]\d\d[.:]\d{2,3}(?:\.\d{3})? [A-Z] ")
_MODULE: Final = re.compile(r"^(?:srv|slot|spec|cmn|main) +\S+: ")
_JSON_LINE: Final = '{"type":'
_STATISTIC: Final = re.compile(
    r"#?(?P<key>[a-z][a-z /]*?)(?:\(b,g,a\))? *= *(?P<value>\([^)]*\)|[-\d.]+(?:(?:, *| +)[-\d.]+)*)"
)
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?")
_LONGEST_TEXT: Final = 300


def clean_line(line: str) -> str:
    """The message of a line: without colours, prefix and control characters; of a JSON line its `msg`."""
    if line.startswith(_JSON_LINE):
        line = _json_message(line)
    line = without_escapes(line)
    if not line.isprintable():
        line = "".join(c if c.isprintable() else " " for c in line)
    return _PREFIX.sub("", line.strip())


def _json_message(line: str) -> str:
    try:
        record = json.loads(line)
    except ValueError:
        return line
    message = record.get("msg") if isinstance(record, dict) else None
    return message if isinstance(message, str) else line


class LogParser:
    """Feed the lines of one server in order. State: which model is being loaded, and the type just announced."""

    def __init__(self, *, with_draft: bool = True) -> None:
        self._with_draft = with_draft
        self._role = Role.TARGET
        self._progress = 0.0
        self._listening = False
        self._announced: str | None = None

    @property
    def draft_loaded(self) -> bool:
        """Whether the server loaded a draft model."""
        return self._role is Role.DRAFT

    def feed(self, line: str) -> Event | None:
        """The event of this line, or None for a line that means nothing here."""
        for literal, pattern, make in _TABLE:
            if literal in line:
                message = clean_line(line)
                match = pattern.search(message)
                event = make(self, match) if match is not None else None
                if event is not None:
                    return event
        return None

    def placed(self, match: re.Match[str]) -> Event | None:
        """A buffer with weights, of the model in turn."""
        return BufferPlaced(self._role, match["device"], float(match["mib"]))

    def offloaded(self, match: re.Match[str]) -> Event | None:
        """Layers given to a GPU, of the model in turn."""
        return LayersOffloaded(self._role, int(match["layers"]), int(match["total"]))

    def draft_begins(self, match: re.Match[str]) -> Event | None:
        """From here on, lines are about the draft model."""
        self._role = Role.DRAFT
        return self.advance(0.6, "loading the draft model", match)

    def advance(self, fraction: float, note: str, match: re.Match[str]) -> Event | None:
        """A stage of the load; never backwards, and nothing once the server listens."""
        if self._listening or fraction <= self._progress:
            return None
        self._progress = fraction
        return LoadProgress(fraction, note)

    def stage(self, match: re.Match[str]) -> Event | None:
        """A stage that target and draft go through alike."""
        words = _STAGES[match["stage"]]
        target_share = 0.55 if self._with_draft else 0.9
        start, share = (0.6, 0.35) if self._role is Role.DRAFT else (0.05, target_share)
        return self.advance(round(start + share * words[0], 3), f"{words[1]} the {self._role} model", match)

    def loaded(self, match: re.Match[str]) -> Event | None:
        """All models are loaded."""
        self._progress = 1.0
        return ModelLoaded()

    def listening(self, match: re.Match[str]) -> Event | None:
        """Startup is over; stages of a later reload are no news."""
        self._listening = True
        return Listening(match["url"])

    def announced(self, match: re.Match[str]) -> Event | None:
        """A type, before its lengths."""
        self._announced = current_type(match["type"])
        return SpeculationInit(self._announced)

    def lengths(self, match: re.Match[str]) -> Event | None:
        """The lengths of the type announced last."""
        if self._announced is None:
            return None
        n_max, n_min, p_min = match["n_max"] or match["size"], match["n_min"], match["p_min"]
        return SpeculationInit(
            self._announced,
            n_max=int(n_max),
            n_min=int(n_min) if n_min else None,
            p_min=float(p_min) if p_min else None,
        )

    def not_speculating(self, match: re.Match[str]) -> Event | None:
        """The server's own word that it does not speculate."""
        return SpeculationOff(_short(match.string), self.draft_loaded)


_Make = Callable[[LogParser, re.Match[str]], Event | None]

_STAGES: Final = {
    "loaded meta data": (0.0, "reading"),
    "loading model tensors": (0.15, "loading"),
    "constructing llama_context": (0.7, "making the context of"),
    "warming up the model": (0.9, "warming up"),
}


def _short(text: str) -> str:
    text = _MODULE.sub("", text)
    return text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + "..."


def _failure(code: str) -> _Make:
    def make(_: LogParser, match: re.Match[str]) -> Event:
        subject = match["subject"] if "subject" in match.re.groupindex else None
        return LogFailure(code, _short(match.string), subject)

    return make


def _advance(fraction: float, note: str) -> _Make:
    return lambda parser, match: parser.advance(fraction, note, match)


def _argument_failure(_: LogParser, match: re.Match[str]) -> Event:
    """A flag or variable that was refused while the command line was read."""
    reason = match["reason"]
    if match["kind"] == "environment variable":
        code = "env-stale"
    elif "has been removed" in reason:
        code = "flag-removed"
    elif "unknown speculative type" in reason:
        code = "type-renamed"
    else:
        code = "flag-value"
    return LogFailure(code, _short(match.string), match["subject"])


def _statistics(_: LogParser, match: re.Match[str]) -> Event | None:
    numbers = {
        entry["key"]: tuple(float(n) for n in _NUMBER.findall(entry["value"]))
        for entry in _STATISTIC.finditer(match["rest"])
    }
    counts = [int(numbers[key][0]) if numbers.get(key) else None for key in _COUNTS]
    drafts, accepted_drafts, drafted, accepted = counts
    if drafts is None or accepted_drafts is None or drafted is None or accepted is None:
        return None
    calls, duration = numbers.get("calls", ()), numbers.get("dur", ())
    mean = numbers.get("mean acc len", ())
    return Statistics(
        implementation=current_type(match["type"]),
        calls=int(calls[1] if len(calls) == 3 else calls[0]) if calls else None,
        drafts=drafts,
        accepted_drafts=accepted_drafts,
        drafted=drafted,
        accepted=accepted,
        draft_ms=(duration[1] if len(duration) == 3 else duration[0]) if duration else None,
        mean_length=mean[0] if mean else None,
        per_position=numbers.get("acc rate/pos", ()),
    )


_COUNTS: Final = ("gen drafts", "acc drafts", "gen tokens", "acc tokens")


def _acceptance(_: LogParser, match: re.Match[str]) -> Event:
    mean = match["mean"]
    return Acceptance(int(match["accepted"]), int(match["drafted"]), float(mean) if mean else None)


def _timing(_: LogParser, match: re.Match[str]) -> Event:
    kind = PromptRead if match["prompt"] else Generated
    return kind(int(match["tokens"]), float(match["ms"]))


def _trace(_: LogParser, match: re.Match[str]) -> Event:
    return PassTrace(int(match["accepted"]), int(match["drafted"]), match["restored"] is not None)


def _build(_: LogParser, match: re.Match[str]) -> Event:
    return BuildInfo(int(match["build"]), match["commit"])


def _device(_: LogParser, match: re.Match[str]) -> Event:
    return DeviceFound(match["name"], match["text"], float(match["total"]), float(match["free"]))


def _row(literal: str, make: _Make, pattern: str = "") -> tuple[str, re.Pattern[str], _Make]:
    return literal, re.compile(pattern or re.escape(literal)), make


_LENGTHS: Final = (
    r"- (?:(?:size_(?:n|key)=\d+, size_(?:m|value)|n_draft)=(?P<size>\d+)"
    r"|(?:n_match=\d+, )?n_max=(?P<n_max>\d+), n_min=(?P<n_min>\d+)(?:, p_min=(?P<p_min>[\d.]+))?)"
)
_OFF: Final = LogParser.not_speculating

_TABLE: Final = (
    # Running
    _row(
        " draft tokens",
        _trace,
        r"accepted +(?P<accepted>\d+)/ *(?P<drafted>\d+) draft tokens(?P<restored> \(restore)?",
    ),
    _row(
        "draft acceptance",
        _acceptance,
        r"draft acceptance(?: rate)? = [\d.]+ \( *(?P<accepted>\d+) accepted / *(?P<drafted>\d+) generated\)"
        r"(?:, mean (?:acceptance length|len) = *(?P<mean>[\d.]+))?",
    ),
    _row(
        "eval time =",
        _timing,
        r"(?P<prompt>prompt )?eval time = *(?P<ms>[\d.]+) ms / *(?P<tokens>\d+) tokens",
    ),
    _row("statistics ", _statistics, r"\bstatistics +(?P<type>[\w-]+): +(?P<rest>#calls.*)"),
    # Starting
    _row("build", _build, r"(?:^|: )build:? (?P<build>\d+) \((?P<commit>[0-9a-f]+)\)"),
    _row("build=", _build, r'\bbuild=(?P<build>\d+) commit="(?P<commit>[0-9a-f]+)"'),
    _row("build_info: b", _build, r"build_info: b(?P<build>\d+)-(?P<commit>[0-9a-f]+)"),
    _row(
        "MiB free)",
        _device,
        r" - (?P<name>\S+) *: (?P<text>.+) \((?P<total>[\d.]+) MiB, (?P<free>[\d.]+) MiB free\)",
    ),
    _row("loading draft model", LogParser.draft_begins),
    _row("creating MTP draft context", _advance(0.6, "making the draft context")),
    _row("loading model '", _advance(0.02, "loading the target model")),
    *(_row(stage, LogParser.stage, f"(?P<stage>{re.escape(stage)})") for stage in _STAGES),
    _row("initializing", _advance(0.96, "making the slots"), r"initializing(?: slots)?, n_slots"),
    _row("speculative decoding context initialized", _advance(0.98, "speculation is set up")),
    _row("model loaded", LogParser.loaded, r"(?:^|: )model loaded\b"),
    _row("listening on ", LogParser.listening, r"\blistening on (?P<url>\w+://\S+)"),
    _row("model buffer size", LogParser.placed, r"(?P<device>\S+) +model buffer size = +(?P<mib>[\d.]+) MiB"),
    _row("layers to GPU", LogParser.offloaded, r"offloaded (?P<layers>\d+)/(?P<total>\d+) layers to GPU"),
    _row("adding speculative implementation", LogParser.announced, r"implementation '?(?P<type>[\w-]+)"),
    _row("n_max=", LogParser.lengths, _LENGTHS),
    _row("- size_", LogParser.lengths, _LENGTHS),
    _row("- n_draft=", LogParser.lengths, _LENGTHS),
    # Refused command lines
    _row(
        "error while handling",
        _argument_failure,
        r'error while handling (?P<kind>argument|environment variable) "(?P<subject>[^"]+)": (?P<reason>.*)',
    ),
    _row("invalid argument: ", _failure("flag-unknown"), r"error: invalid argument: (?P<subject>\S+)"),
    _row("unknown argument: ", _failure("flag-unknown"), r"error: unknown argument: (?P<subject>\S+)"),
    # Model files
    _row(
        "No such file or directory",
        _failure("model-missing"),
        r"(?:failed to|cannot) open (?:GGUF file )?['\"]?(?P<subject>[^'\"():]+)",
    ),
    _row(
        "unknown model architecture",
        _failure("arch-unknown"),
        r"unknown model architecture: '(?P<subject>[^']*)'",
    ),
    _row(
        "unknown pre-tokenizer type",
        _failure("arch-unknown"),
        r"unknown pre-tokenizer type: '(?P<subject>[^']*)'",
    ),
    _row("invalid magic characters", _failure("model-corrupt")),
    _row("model is corrupted or incomplete", _failure("model-corrupt"), r"tensor '(?P<subject>[^']*)'"),
    _row("wrong number of tensors", _failure("model-corrupt")),
    _row("missing tensor '", _failure("model-corrupt"), r"missing tensor '(?P<subject>[^']*)'"),
    _row("model doesn't contain MTP layers", _failure("flag-value")),
    # Two models that do not fit
    _row("must match target model to use speculation", _failure("vocab-mismatch")),
    _row(
        "target and draft vocabs are not compatible",
        _failure("vocab-mismatch"),
        r"vocabs are not compatible$",
    ),
    _row(
        "is not compatible with the target model",
        _failure("vocab-mismatch"),
        r"draft model '(?P<subject>[^']*)' is not compatible with the target model '[^']*'\.?$",
    ),
    _row(
        "requires a draft context",
        _failure("draft-model-missing"),
        r"(?P<subject>[\w-]+) requires a draft context",
    ),
    # No speculation, but a server
    _row("no implementations specified for speculative decoding", _OFF),
    _row("speculative dec", _OFF, r"speculative decod(?:e|ing)(?: is)? not supported"),
    _row("failed to initialize speculative decoding context", _OFF),
    _row("does not support partial sequence removal", _OFF),
    _row("draft model is not eagle3", _OFF),
    # Resources
    _row("out of memory", _failure("out-of-memory")),
    _row("OutOfDeviceMemory", _failure("out-of-memory")),
    _row("OutOfMemory", _failure("out-of-memory")),
    _row("Insufficient Memory", _failure("out-of-memory")),
    _row("Device memory allocation of size", _failure("out-of-memory")),
    _row("exceeds device buffer size limit", _failure("out-of-memory")),
    _row(
        "failed to allocate",
        _failure("out-of-memory"),
        r"failed to allocate (?:\w+ )*(?:buffer|buffers|memory)\b",
    ),
    _row("bad_alloc", _failure("out-of-memory")),
    _row("failed with status 5", _failure("out-of-memory"), r"command buffer \d+ failed with status 5"),
    _row(
        "couldn't bind",
        _failure("port-in-use"),
        r"couldn't bind HTTP server socket, hostname: [^,]*, port: (?P<subject>\d+)",
    ),
    # While it runs
    _row("failed to process speculative batch", _failure("server-error")),
    _row("decode() failed", _failure("server-error")),
    _row("got exception", _failure("server-error"), r'got exception: .*"code": ?5\d\d'),
    _row("GGML_ASSERT(", _failure(GENERIC_FAILURE), r"GGML_ASSERT\((?P<subject>.*)\) failed"),
    # Said after the reason
    _row("failed to load model", _failure(GENERIC_FAILURE), r"failed to load model, '(?P<subject>[^']*)'"),
    _row(
        "failed to load draft model",
        _failure(GENERIC_FAILURE),
        r"failed to load draft model, '(?P<subject>[^']*)'",
    ),
    _row("failed to create MTP context", _failure(GENERIC_FAILURE), "failed to create MTP context$"),
    _row("exiting due to", _failure(GENERIC_FAILURE)),
)
