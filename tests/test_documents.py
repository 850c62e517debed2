"""Documents and program agree: paths that are named exist, commands and options too, and no code is left out."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from spectui.cli.main import COMMANDS, cli, main
from spectui.core.verdict.findings import LAUNCH_ADVICE
from spectui.core.verdict.rules import MEASUREMENT_RULES
from spectui.guide.pages import TOPICS, page, summary

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)#\s]+)\)")
PATH = re.compile(r"[\w.-]*/[\w./-]*|[\w-]+\.(?:py|md|toml|ya?ml|tcss)")
OPTION = re.compile(r"(?<![\w-])--?[a-z][\w-]*")
COMMON = {"--help", "-h"}
SERVER_FLAGS = set(OPTION.findall((ROOT / "tests/data/help/b10434.txt").read_text("utf-8"))) | {"--draft-max"}
"""Flags of llama-server, which pages name as well."""


def words_of(text: str) -> Iterator[str]:
    """Inline code outside of blocks."""
    yield from SPAN.findall(FENCE.sub("", text))


def commands_of(text: str) -> Iterator[list[str]]:
    """Every call of spectui in inline code and in blocks for a shell."""
    lines = [line for kind, block in FENCE.findall(text) if kind == "sh" for line in block.splitlines()]
    for line in (*lines, *words_of(text)):
        for part in line.partition("  #")[0].split("&&"):
            words = part.split()
            if words and words[0].rpartition("/")[2] == "spectui":
                yield words[1:]


def option_problem(words: list[str]) -> str | None:
    """What these arguments name that the program does not have."""
    command: click.Command = cli
    known = set(COMMON)
    for word in words:
        known.update(name for option in command.params for name in option.opts)
        if not word.startswith("-") and word in (parts := parts_of(command)):
            command = parts[word]
        elif command is cli and not word.startswith("-"):
            return f"there is no command {word}"
        elif word.startswith("--") and word.partition("=")[0] not in known:
            return f"there is no {word}"
    return None


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"])
def test_every_path_that_a_document_names_exists(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    named = [word for word in words_of(text) if PATH.fullmatch(word) and not word.startswith("/")]
    named += [link for link in LINK.findall(text) if "://" not in link]
    assert len(named) >= 3
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_readme_is_read_in_one_go() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 150


def test_the_readme_explains_the_screen_in_the_words_of_the_guide() -> None:
    table = [line for line in page("screen").splitlines() if line.startswith("|")]
    assert len(table) > 10
    assert "\n".join(table) in (ROOT / "README.md").read_text("utf-8")


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", *TOPICS])
def test_every_command_and_option_that_is_named_exists(name: str) -> None:
    text = page(name) if name in TOPICS else (ROOT / name).read_text("utf-8")
    assert [problem for words in commands_of(text) if (problem := option_problem(words))] == []
    everywhere = {name for command in every_command(cli) for option in command.params for name in option.opts}
    bare = {word for word in words_of(text) if OPTION.fullmatch(word.split()[0])}
    allowed = everywhere | COMMON | SERVER_FLAGS
    assert [word for word in bare if word.split()[0] not in allowed] == []


def every_command(command: click.Command) -> Iterator[click.Command]:
    yield command
    for one in parts_of(command).values():
        yield from every_command(one)


def parts_of(command: click.Command) -> dict[str, click.Command]:
    """The commands of a group by name; none of any other command."""
    if not isinstance(command, click.Group):
        return {}
    context = click.Context(command)
    found = {name: command.get_command(context, name) for name in command.list_commands(context)}
    return {name: one for name, one in found.items() if one is not None}


def test_a_command_or_option_that_is_gone_is_noticed() -> None:
    assert option_problem(["sweep", "p.toml", "--plan"]) is None
    assert option_problem(["sweep", "p.toml", "--plans"]) == "there is no --plans"
    assert option_problem(["swept"]) == "there is no command swept"


def test_the_guide_names_every_command() -> None:
    text = "".join(map(page, TOPICS))
    assert [name for name in COMMANDS if f"spectui {name}" not in text] == []


@pytest.mark.parametrize("topic", TOPICS)
def test_every_topic_prints_its_page(topic: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["guide", topic])
    assert ended.value.code == 0
    assert capsys.readouterr().out == page(topic)
    title, empty, about = page(topic).split("\n")[:3]
    assert title.startswith("# ")
    assert empty == ""
    assert about == summary(topic)
    assert len(f"{'':{max(map(len, TOPICS))}}  {about}") < 80


def test_the_guide_lists_its_pages(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["guide"])
    assert ended.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(TOPICS)


def test_there_is_a_page_for_every_file() -> None:
    assert {path.stem for path in (ROOT / "spectui/guide").glob("*.md")} == set(TOPICS)


def test_an_unknown_topic_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["guide", "../README"])
    assert ended.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert "troubleshooting" in printed.err


def test_a_terminal_gets_a_page_that_is_rendered_and_fits() -> None:
    ours, theirs = pty.openpty()
    environ = {**os.environ, "TERM": "xterm", "COLUMNS": "60"}
    argv = [sys.executable, "-m", "spectui", "guide", "gpu"]
    with subprocess.Popen(argv, stdout=theirs, env=environ, cwd=ROOT) as process:
        os.close(theirs)
        text = b""
        while chunk := _read(ours):
            text += chunk
    os.close(ours)
    assert process.returncode == 0
    shown = re.sub(r"\x1b\[[\d;]*m", "", text.decode()).splitlines()
    assert "macOS" in text.decode()
    assert not any(line.startswith("#") for line in shown)
    assert max(map(len, shown)) <= 60


def _read(number: int) -> bytes:
    try:
        return os.read(number, 65536)
    except OSError:  # how Linux says that the other end of a terminal is closed
        return b""


def test_troubleshooting_explains_every_code() -> None:
    text = page("troubleshooting")
    codes = {*LAUNCH_ADVICE, *(rule.code for rule in MEASUREMENT_RULES)}
    assert len(codes) > 40
    assert [code for code in codes if f"- `{code}`: " not in text] == []


def test_the_pages_before_it_do_not_explain_codes_by_hand() -> None:
    codes = {*LAUNCH_ADVICE, *(rule.code for rule in MEASUREMENT_RULES)}
    for topic in TOPICS[:-1]:
        assert not {word for word in words_of(page(topic)) if word in codes}
