"""Workloads: the built-in and the user's own prompt sets, the order they are sent in, and padding.

Acceptance depends on the workload more than on anything else, so what is sent is fixed, known and reproducible:
two runs with the same seed send the same requests in the same order, and can be paired one by one.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Final, Self

from spectui.core.profile import TrafficSettings, TuningProfile
from spectui.core.text import one_line
from spectui.errors import PromptsError
from spectui.lab.workloads.filler_text import sentences
from spectui.lab.workloads.prompt_files import Message, Prompt, parse_jsonl, read_prompts

__all__ = [
    "OWN",
    "Message",
    "Prompt",
    "PromptSequence",
    "Workload",
    "builtin_names",
    "load_builtin",
    "load_file",
    "load_workload",
    "pad",
    "vary",
]

OWN: Final = "own"
"""Name of the workload that a prompt file makes."""

_BUILTIN: Final = {
    "code": "source files to be continued, in a dozen languages, without a chat template",
    "prose": "stories, essays, letters and descriptions",
    "json": "structured answers: objects, arrays, schemas, extraction",
    "rewrite": "a file to be repeated with one small change, so that the answer copies the prompt",
    "chat": "everyday questions and requests",
    "summarise": "articles of about two hundred words to be summed up",
}

_OPENINGS: Final = (
    "Please help me with this.",
    "Hello, I need your help.",
    "Here is what I would like to have.",
    "Good morning, I have a request.",
    "Could you do this for me, please?",
    "Thank you in advance for your answer.",
    "I have one more request.",
    "May I ask you for the following?",
    "Please read this carefully.",
    "Good evening, here is my request.",
    "This is the next one on my list.",
    "I would be glad about an answer to this.",
)
"""Lines that ask for nothing, so that the answer stays of the same kind."""

_BRIDGE: Final = "That was the log. Now to something else."
_CHARACTERS_PER_TOKEN: Final = 4.0
"""Rule of thumb for English text in common vocabularies; SmolLM2's reads the filler at 4.1."""
_SENTENCES_PER_PARAGRAPH: Final = 6


@dataclass(frozen=True, slots=True)
class Workload:
    """A named set of prompts of one kind, never empty."""

    name: str
    description: str
    """One line for people."""
    prompts: tuple[Prompt, ...]


def builtin_names() -> tuple[str, ...]:
    """Names of the built-in workloads, in the order they are offered."""
    return tuple(_BUILTIN)


def load_builtin(name: str) -> Workload:
    """A built-in workload, read from the package. Raises PromptsError for a name that does not exist."""
    if name not in _BUILTIN:
        known = ", ".join(_BUILTIN)
        raise PromptsError(
            f'no workload "{one_line(name, 40)}"; there are {known}, and {OWN} with a prompt file'
        )
    resource = files("spectui.lab.workloads") / "prompts" / f"{name}.jsonl"
    return Workload(
        name, _BUILTIN[name], tuple(parse_jsonl(resource.read_text(encoding="utf-8"), resource.name))
    )


def load_file(path: Path | str) -> Workload:
    """The user's own prompts, as workload "own"; formats: prompt_files. Raises PromptsError."""
    try:
        found = Path(path).expanduser()
    except RuntimeError:
        raise PromptsError(f"{one_line(str(path))}: no such home directory; give the full path") from None
    prompts = read_prompts(found)
    return Workload(OWN, f"{len(prompts)} own prompts from {one_line(found.name)}", prompts)


def load_workload(traffic: TrafficSettings) -> Workload:
    """The workload that the settings name: a built-in one, or "own" with the file in `prompts`.

    A built-in name wins over `prompts`, so that one can switch between own and built-in prompts. Raises
    PromptsError.
    """
    if traffic.workload != OWN:
        return load_builtin(traffic.workload)
    if not traffic.prompts:
        raise PromptsError(
            f'workload "{OWN}" needs a prompt file; set traffic.prompts to a .txt or .jsonl file'
        )
    return load_file(traffic.prompts)


class PromptSequence(Iterator[Prompt]):
    """The endless sequence of requests over a workload; no two of them are the same.

    The first round goes through the prompts as they stand in the file, each further round in an order of its own.
    Servers remember what they have seen (prompt caches, n-gram caches over all requests), so a repeated prompt
    would flatter them: from the second round on every prompt is varied (see `vary`), and so is a prompt that
    stands in a file twice. What a server learnt from its own similar answers remains; only more prompts help.

    seed: decides the order of the rounds. depth: pads every request to about so many tokens (see `pad`), counted
    by `count` if given. start: number of the first request, where those before it belong to others.
    """

    def __init__(
        self,
        workload: Workload,
        *,
        seed: int = 0,
        depth: int = 0,
        start: int = 0,
        count: Callable[[str], float] | None = None,
    ) -> None:
        self._prompts = workload.prompts
        self._seed = seed
        self._depth = depth
        self._count = count
        self.sent = start
        """Number of the next request."""
        self._order: tuple[int, list[int]] = (0, list(range(len(self._prompts))))
        self._first, self._rank = _occurrences(self._prompts)
        self._copies = max(self._rank, default=0) + 1

    @classmethod
    def under(cls, profile: TuningProfile, workload: Workload, *, start: int = 0) -> Self:
        """Those that are sent under a profile."""
        return cls(workload, seed=profile.sampling.seed, depth=profile.traffic.depth, start=start)

    def __next__(self) -> Prompt:
        prompt = self.at(self.sent)
        self.sent += 1
        return prompt

    def at(self, number: int) -> Prompt:
        """Request `number`, counted from 0; independent of how far the sequence has been read."""
        turn, place = divmod(number, len(self._prompts))
        index = self._order_of(turn)[place]
        variant = turn * self._copies + self._rank[index]
        prompt = vary(self._prompts[index], variant, offset=self._first[index])
        return pad(prompt, self._depth, index=number, count=self._count)

    def _order_of(self, turn: int) -> list[int]:
        if self._order[0] != turn:
            order = list(range(len(self._prompts)))
            if turn:
                random.Random(f"{self._seed} {turn}").shuffle(order)  # noqa: S311  reproducible, no secret
            self._order = (turn, order)
        return self._order[1]


def vary(prompt: Prompt, variant: int, *, offset: int = 0) -> Prompt:
    """The same request in other clothes; variant 0 is the prompt itself, all others differ from one another.

    The change is short, means nothing and stands at the very start, so that the answer stays of the same kind
    (acceptance stays comparable) while no cached prefix fits. A chat gets a polite line before its first user
    message, raw text a comment line where its language is known, else blank lines of differing width. `offset`
    shifts the choice of the line, so that the prompts of one round do not all begin alike.
    """
    if variant == 0:
        return prompt
    name = f"{prompt.id} #{variant + 1}"
    if prompt.messages is None:
        return replace(prompt, id=name, text=_varied_text(prompt.text or "", variant, prompt.line_comment))
    turn = (variant - 1) // len(_OPENINGS)
    opening = _OPENINGS[(variant - 1 + offset) % len(_OPENINGS)]
    if turn:
        opening = f"{opening} (Request {turn + 1}.)"
    return replace(prompt, id=name, messages=_before_first_user(prompt.messages, f"{opening}\n"))


def pad(
    prompt: Prompt,
    depth_tokens: int,
    *,
    index: int,
    count: Callable[[str], float] | None = None,
) -> Prompt:
    """The prompt behind unrelated text, about `depth_tokens` tokens together (within a sentence or two).

    The same index gives the same text; different indices differ from the start, so that no cached prefix fits (a
    user's system message and the chat template stay in front). count: tokens of a text; without it four
    characters make a token. A prompt that is long enough stays as it is.
    """
    measure = count or _estimated_tokens
    missing = depth_tokens - measure(prompt.content)
    if depth_tokens <= 0 or missing <= 0:
        return prompt
    if prompt.messages is None:
        leader = f"{prompt.line_comment} " if prompt.line_comment else ""
        lines = _take(missing, (f"{leader}{sentence}\n" for sentence in sentences(index)), measure)
        return replace(prompt, text="".join(lines) + f"\n{prompt.text or ''}")
    missing -= measure(_BRIDGE)
    filler = "".join(_take(missing, _paragraphs(index), measure)) + f"\n\n{_BRIDGE}\n\n"
    return replace(prompt, messages=_before_first_user(prompt.messages, filler))


def _paragraphs(index: int) -> Iterator[str]:
    """Sentences with what joins each to the one before it."""
    for number, sentence in enumerate(sentences(index)):
        if number % _SENTENCES_PER_PARAGRAPH:
            yield f" {sentence}"
        else:
            yield f"\n\n{sentence}" if number else sentence


def _take(tokens: float, pieces: Iterator[str], measure: Callable[[str], float]) -> list[str]:
    """The first pieces that make at least so many tokens; at least one piece."""
    taken: list[str] = []
    for piece in pieces:
        taken.append(piece)
        tokens -= measure(piece)
        if tokens <= 0:
            break
    return taken


def _estimated_tokens(text: str) -> float:
    return len(text) / _CHARACTERS_PER_TOKEN


def _varied_text(text: str, variant: int, line_comment: str | None) -> str:
    if line_comment is None:
        return _blank_lines(variant) + text
    note = f"{line_comment} Revision {variant + 1}\n"
    if text.startswith("#!"):
        # Only in the first line is it an interpreter's name.
        first, _, rest = text.partition("\n")
        return f"{first}\n{note}{rest}"
    return note + text


def _blank_lines(variant: int) -> str:
    """Blank lines that spell the number: one line per digit to base 4, the digit being its count of spaces."""
    digits: list[int] = []
    while variant:
        variant, digit = divmod(variant, 4)
        digits.append(digit)
    return "".join(" " * digit + "\n" for digit in reversed(digits))


def _before_first_user(messages: tuple[Message, ...], text: str) -> tuple[Message, ...]:
    """The chat with `text` at the start of its first user message, or of its first one if no user speaks."""
    place = next((i for i, message in enumerate(messages) if message.role == "user"), 0)
    changed = Message(messages[place].role, text + messages[place].content)
    return (*messages[:place], changed, *messages[place + 1 :])


def _occurrences(prompts: tuple[Prompt, ...]) -> tuple[list[int], list[int]]:
    """For each prompt the place where its content stands first, and how often it stands before."""
    first: dict[tuple[str | None, tuple[Message, ...] | None], int] = {}
    seen: Counter[tuple[str | None, tuple[Message, ...] | None]] = Counter()
    places: list[int] = []
    ranks: list[int] = []
    for index, prompt in enumerate(prompts):
        key = (prompt.text, prompt.messages)
        places.append(first.setdefault(key, index))
        ranks.append(seen[key])
        seen[key] += 1
    return places, ranks
