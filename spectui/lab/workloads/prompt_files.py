"""Prompts and the files that hold them: `.txt` and `.jsonl` -> Prompt, or one line that says what is wrong.

Foreign data enters here. A file means what its format means elsewhere:

- `.txt`: prompts separated by blank lines; each is what a user says in a chat.
- `.jsonl`: one object per line. `messages` is a chat, `prompt` is raw text that the model continues, as in the
  bodies of /v1/chat/completions and /v1/completions. Lines of a batch file carry the body under `body`. Of the
  other keys `max_tokens` (or `max_completion_tokens`), `id` (or `custom_id`) and `line_comment` are read, the
  rest (model, temperature, ...) is ignored: those belong to the profile.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from spectui.core.text import one_line
from spectui.errors import PromptsError

MAX_FILE_BYTES: Final = 50_000_000
"""A larger file is no prompt file but a mistake; it would also be held in memory as a whole."""

MAX_TOKENS_RANGE: Final = (1, 100_000)
"""Tokens that a prompt may ask for; the upper end is that of the profile."""

ROLES: Final = ("system", "developer", "user", "assistant")
"""Roles that chat templates know without tools."""

_SHOWN: Final = 60
"""Characters of foreign text that a message quotes."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat."""

    role: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What one request asks: raw text to be continued, or a chat; exactly one of the two is not None."""

    id: str
    """Names the prompt within its workload, so that two runs can be paired by it."""
    text: str | None = None
    """Raw continuation, sent without the model's chat template."""
    messages: tuple[Message, ...] | None = None
    """A chat, rendered by the model's chat template."""
    max_tokens: int | None = None
    """Tokens that this prompt asks for at most; None leaves it to the profile."""
    line_comment: str | None = None
    """What begins a comment line in the language of `text`; None if that is not known."""

    @property
    def content(self) -> str:
        """All of its text, without roles and template."""
        if self.messages is None:
            return self.text or ""
        return "\n".join(message.content for message in self.messages)


def read_prompts(path: Path) -> tuple[Prompt, ...]:
    """All prompts of a `.txt` or `.jsonl` file. Raises PromptsError."""
    shown = one_line(str(path))
    parsers = {".txt": parse_txt, ".jsonl": parse_jsonl}
    parse = parsers.get(path.suffix.lower())
    if parse is None:
        raise PromptsError(f"{shown}: unknown kind of prompt file; use .txt (blank lines between) or .jsonl")
    prompts = tuple(parse(_read_text(path, shown), shown))
    if not prompts:
        raise PromptsError(f"{shown} holds no prompt; write at least one into it")
    return prompts


def parse_txt(text: str, where: str) -> Iterator[Prompt]:
    """Prompts separated by blank lines. `where` names the file in messages. Raises PromptsError."""
    block: list[str] = []
    start = 0
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for number, line in enumerate([*lines, ""], start=1):
        if line.strip():
            start = start if block else number
            block.append(line)
        elif block:
            content = _usable("\n".join(block), f"{where}:{start}: the prompt")
            yield Prompt(id=f"line {start}", messages=(Message("user", content),))
            block = []


def parse_jsonl(text: str, where: str) -> Iterator[Prompt]:
    """One JSON object per line; blank lines are skipped. `where` names the file. Raises PromptsError."""
    seen: set[str] = set()
    # Not splitlines(): U+2028 and its like are allowed inside a JSON string.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        at = f"{where}:{number}"
        prompt = _from_body(_decode(line, at), at, default_id=f"line {number}", taken=seen)
        seen.add(prompt.id)
        yield prompt


def _read_text(path: Path, shown: str) -> str:
    try:
        found = path.stat()
        # A pipe or a device would be waited for without end.
        if not stat.S_ISREG(found.st_mode):
            raise PromptsError(f"{shown} is not a regular file; name a .txt or .jsonl file")
        if found.st_size > MAX_FILE_BYTES:
            limit = MAX_FILE_BYTES // 1_000_000
            raise PromptsError(f"{shown} is larger than {limit} MB; use a part of it as prompts")
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise PromptsError(f"{shown} does not exist; check the path of the prompt file") from None
    except UnicodeDecodeError as error:
        raise PromptsError(f"{shown} is not UTF-8 text (byte {error.start}); save it as UTF-8") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise PromptsError(f"{shown} cannot be read: {reason}; check the path of the prompt file") from None


def _decode(line: str, at: str) -> Mapping[str, Any]:
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        raise PromptsError(
            f"{at}: broken JSON at column {error.colno} ({error.msg}); mend the line"
        ) from None
    except (ValueError, RecursionError):
        raise PromptsError(f"{at}: JSON that is nested too deeply or holds a number too long") from None
    if not isinstance(value, dict):
        raise PromptsError(f"{at}: {_kind(value)} instead of an object with `prompt` or `messages`")
    return value


def _from_body(line: Mapping[str, Any], at: str, *, default_id: str, taken: set[str]) -> Prompt:
    inner = line.get("body")
    body = inner if isinstance(inner, dict) else line
    text, messages = body.get("prompt"), body.get("messages")
    if (text is None) == (messages is None):
        problem = "neither `prompt` nor `messages`" if text is None else "both `prompt` and `messages`"
        raise PromptsError(f"{at}: has {problem}; give one of them")
    given = line.get("id", line.get("custom_id"))
    name = one_line(given, _SHOWN).strip() if isinstance(given, str) else ""
    return Prompt(
        id=name if name and name not in taken else default_id,
        text=_prompt_text(text, at) if text is not None else None,
        messages=_messages(messages, at) if messages is not None else None,
        max_tokens=_max_tokens(body, at),
        line_comment=_line_comment(body.get("line_comment"), at),
    )


def _prompt_text(value: Any, at: str) -> str:
    if not isinstance(value, str):
        raise PromptsError(f"{at}: `prompt` is {_kind(value)}; only text is allowed")
    return _usable(value, f"{at}: `prompt`")


def _messages(value: Any, at: str) -> tuple[Message, ...]:
    if not isinstance(value, list) or not value:
        found = "empty" if value == [] else _kind(value)
        raise PromptsError(f"{at}: `messages` is {found}; give a list of objects with role and content")
    messages = tuple(_message(item, f"{at}: `messages[{index}]`") for index, item in enumerate(value))
    if not any(message.content.strip() for message in messages):
        raise PromptsError(f"{at}: `messages` holds no text; give at least one message some content")
    return messages


def _message(value: Any, at: str) -> Message:
    if not isinstance(value, dict):
        raise PromptsError(f"{at} is {_kind(value)}; an object with role and content is needed")
    role = value.get("role")
    if role not in ROLES:
        found = f'"{one_line(role, _SHOWN)}"' if isinstance(role, str) else _kind(role)
        raise PromptsError(f"{at} has the role {found}; allowed are {', '.join(ROLES)}")
    return Message(role, _content(value.get("content"), at))


def _content(value: Any, at: str) -> str:
    """A message's text; a list of text parts becomes one text, as the server itself does it."""
    if isinstance(value, str):
        return _encodable(value, f"{at}.content")
    if not isinstance(value, list):
        raise PromptsError(f"{at}.content is {_kind(value)}; text or a list of text parts is allowed")
    parts: list[str] = []
    for part in value:
        text = part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None
        if not isinstance(text, str):
            raise PromptsError(f'{at}.content holds a part other than {{"type": "text", "text": "..."}}')
        parts.append(_encodable(text, f"{at}.content"))
    return "\n".join(parts)


def _max_tokens(body: Mapping[str, Any], at: str) -> int | None:
    low, high = MAX_TOKENS_RANGE
    for key in ("max_tokens", "max_completion_tokens"):
        value = body.get(key)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int):
            raise PromptsError(f"{at}: `{key}` is {_kind(value)}; a whole number is needed")
        if not low <= value <= high:
            raise PromptsError(f"{at}: `{key}` is outside {low} to {high}")
        return value
    return None


def _line_comment(value: Any, at: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not 1 <= len(value) <= 8 or not value.isprintable() or not value.strip():
        raise PromptsError(f'{at}: `line_comment` must be what begins a comment line, such as "#" or "//"')
    return value


def _usable(text: str, what: str) -> str:
    if not text.strip():
        raise PromptsError(f"{what} is empty; write some text")
    return _encodable(text, what)


def _encodable(text: str, what: str) -> str:
    """The text, if a request can carry it."""
    if "\x00" in text:
        raise PromptsError(f"{what} holds a NUL character; save the file as UTF-8 text")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise PromptsError(
            f"{what} holds half of a surrogate pair (\\ud800 to \\udfff); mend the escape"
        ) from None
    return text


def _kind(value: Any) -> str:
    """What a JSON value is, in words."""
    if value is None:
        return "missing or null"
    if isinstance(value, bool):
        return "true or false"
    names = {str: "text", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return names.get(type(value), "something else")
