from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spectui.core.profile import TrafficSettings
from spectui.errors import PromptsError
from spectui.lab.workloads import prompt_files
from spectui.lab.workloads.prompt_files import parse_jsonl, parse_txt
from spectui.lab.workloads.workloads import (
    Message,
    Prompt,
    PromptSequence,
    Workload,
    builtin_names,
    load_builtin,
    load_file,
    load_workload,
    pad,
    vary,
)

NAMES = ("code", "prose", "json", "rewrite", "chat", "summarise")
in_one_directory = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def chat(*content: str) -> Prompt:
    return Prompt(id="p", messages=tuple(Message("user", text) for text in content))


def file_of(tmp_path: Path, name: str, content: str | bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refusal(path: Path | str) -> str:
    with pytest.raises(PromptsError) as caught:
        load_file(path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.isprintable()
    return message


def outcome(parsed: Iterator[Prompt]) -> tuple[list[Prompt], str]:
    """The prompts, or none of them and what was said instead; any other exception is a failure."""
    try:
        return list(parsed), ""
    except PromptsError as error:
        return [], str(error)


def line_refusal(tmp_path: Path, line: str) -> str:
    """What is said about a bad second line; always with file and line."""
    path = file_of(tmp_path, "own.jsonl", '{"prompt": "fine"}\n' + line + "\n")
    message = refusal(path)
    assert message.startswith(f"{path}:2: ")
    return message.removeprefix(f"{path}:2: ")


# built-in workloads


def test_the_builtin_names_are_those_of_the_profile() -> None:
    assert builtin_names() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_builtin_workload_has_enough_distinct_prompts(name: str) -> None:
    workload = load_builtin(name)
    assert workload.name == name
    assert workload.description.isprintable()
    assert len(workload.prompts) >= 24
    assert len({p.id for p in workload.prompts}) == len(workload.prompts)
    assert len({p.content for p in workload.prompts}) == len(workload.prompts)


@pytest.mark.parametrize("name", NAMES)
def test_builtin_prompts_are_short_enough_for_a_small_context(name: str) -> None:
    for prompt in load_builtin(name).prompts:
        words = len(prompt.content.split())
        assert 10 <= words <= (300 if name in {"summarise", "rewrite"} else 150), prompt.id
        assert len(prompt.content) < 2500, prompt.id


@pytest.mark.parametrize("name", NAMES)
def test_builtin_prompts_do_not_repeat_one_another(name: str) -> None:
    texts = [set(re.findall(r"\w+", p.content.lower())) for p in load_builtin(name).prompts]
    for index, words in enumerate(texts):
        for other in texts[:index]:
            assert len(words & other) / len(words | other) < 0.5


def test_only_code_is_raw_continuation() -> None:
    for name in NAMES:
        for prompt in load_builtin(name).prompts:
            assert (prompt.messages is None) == (name == "code")
            assert (prompt.text is not None) == (name == "code")


def test_code_prompts_know_their_comments_and_cover_many_languages() -> None:
    prompts = load_builtin("code").prompts
    assert {p.line_comment for p in prompts} == {"#", "//", "--"}
    assert len({p.id.split("-")[0] for p in prompts}) >= 12


def test_each_rewrite_prompt_holds_one_file_of_25_to_60_lines() -> None:
    for prompt in load_builtin("rewrite").prompts:
        assert prompt.messages is not None
        assert [m.role for m in prompt.messages] == ["user", "assistant", "user"]
        blocks = re.findall(r"```\w+\n(.*?)\n```", prompt.content, flags=re.DOTALL)
        long = [length for length in (len(block.split("\n")) for block in blocks) if length > 5]
        assert len(long) == 1, prompt.id
        assert 25 <= long[0] <= 60, prompt.id


def test_each_summarise_prompt_holds_a_passage_of_120_to_250_words() -> None:
    for prompt in load_builtin("summarise").prompts:
        passage = prompt.content.partition("\n\n")[2]
        assert 120 <= len(passage.split()) <= 250, prompt.id


@pytest.mark.parametrize("name", ["chat", "prose"])
def test_some_prompts_hold_emoji_and_japanese(name: str) -> None:
    texts = [p.content for p in load_builtin(name).prompts]
    assert sum(bool(re.search("[\U0001f300-\U0001faff]", text)) for text in texts) >= 2
    assert sum(bool(re.search("[\u3040-\u30ff]", text)) for text in texts) >= 2


def test_an_unknown_workload_lists_the_names() -> None:
    with pytest.raises(PromptsError) as caught:
        load_builtin("cod\x1b[31me\n")
    assert str(caught.value) == (
        'no workload "code "; there are code, prose, json, rewrite, chat, summarise, and own with a prompt file'
    )


def test_importing_workloads_does_not_import_heavy_libraries() -> None:
    code = (
        "import sys, spectui.lab.workloads.workloads as w; w.load_builtin('chat'); print(sorted(sys.modules))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    assert not any(f"'{name}'" in found for name in ("pydantic", "httpx", "numpy", "textual", "llama_cpp"))


# load_workload


def test_the_settings_name_a_builtin_workload(tmp_path: Path) -> None:
    own = file_of(tmp_path, "own.txt", "mine")
    assert load_workload(TrafficSettings()).name == "code"
    assert load_workload(TrafficSettings(workload="json", prompts=str(own))).name == "json"


def test_the_settings_name_a_file(tmp_path: Path) -> None:
    own = file_of(tmp_path, "own.txt", "mine")
    workload = load_workload(TrafficSettings(workload="own", prompts=str(own)))
    assert workload == Workload(
        "own", "1 own prompts from own.txt", (Prompt(id="line 1", messages=(Message("user", "mine"),)),)
    )


def test_own_without_a_file_says_what_is_missing() -> None:
    with pytest.raises(PromptsError, match=r'^workload "own" needs a prompt file; set traffic\.prompts'):
        load_workload(TrafficSettings(workload="own"))


# .txt


def test_txt_prompts_are_separated_by_blank_lines(tmp_path: Path) -> None:
    path = file_of(tmp_path, "own.txt", "\n\nfirst line\n  second line\n \t\n\nanother\n\n")
    assert [(p.id, p.content) for p in load_file(path).prompts] == [
        ("line 3", "first line\n  second line"),
        ("line 7", "another"),
    ]


@pytest.mark.parametrize("newline", ["\r\n", "\r"])
def test_txt_with_a_bom_and_other_line_ends(tmp_path: Path, newline: str) -> None:
    path = file_of(tmp_path, "own.TXT", b"\xef\xbb\xbf" + f"a{newline}b{newline}{newline}c".encode())
    assert [p.content for p in load_file(path).prompts] == ["a\nb", "c"]


LINES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\x00"), min_size=1).filter(
    str.strip
)


@given(st.lists(st.lists(LINES, min_size=1, max_size=4), min_size=1, max_size=6))
@in_one_directory
def test_txt_round_trip(tmp_path: Path, blocks: list[list[str]]) -> None:
    contents = ["\n".join(block) for block in blocks]
    path = file_of(tmp_path, "own.txt", "\ufeff" + "\n\n".join(contents))
    assert [p.content for p in load_file(path).prompts] == contents


# .jsonl


def test_jsonl_prompt_is_raw_text(tmp_path: Path) -> None:
    line = '{"id": "sum", "prompt": "def f():\\n", "line_comment": "#", "model": "m", "temperature": 0.7}'
    prompts = load_file(file_of(tmp_path, "own.jsonl", line)).prompts
    assert prompts == (Prompt(id="sum", text="def f():\n", line_comment="#"),)


def test_jsonl_messages_are_a_chat(tmp_path: Path) -> None:
    body = {
        "model": "gpt",
        "temperature": 1,
        "stream": True,
        "max_tokens": 64,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        ],
    }
    prompts = load_file(file_of(tmp_path, "own.jsonl", "\r\n" + json.dumps(body) + "\r\n")).prompts
    assert prompts == (
        Prompt(
            id="line 2", max_tokens=64, messages=(Message("system", "Be brief."), Message("user", "a\nb"))
        ),
    )


def test_jsonl_of_a_batch_file(tmp_path: Path) -> None:
    body = {"messages": [{"role": "user", "content": "hello"}], "max_completion_tokens": 9}
    line = {"custom_id": "r-1", "method": "POST", "url": "/v1/chat/completions", "body": body}
    prompts = load_file(file_of(tmp_path, "own.jsonl", json.dumps(line))).prompts
    assert prompts == (Prompt(id="r-1", messages=(Message("user", "hello"),), max_tokens=9),)


def test_jsonl_repeated_ids_stay_distinct(tmp_path: Path) -> None:
    path = file_of(tmp_path, "own.jsonl", '{"id": "x", "prompt": "a"}\n{"id": "x", "prompt": "b"}')
    assert [p.id for p in load_file(path).prompts] == ["x", "line 2"]


CONTENT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")).filter(str.strip)
MESSAGE = st.builds(Message, st.sampled_from(prompt_files.ROLES), CONTENT)


@given(
    st.lists(st.one_of(CONTENT, st.lists(MESSAGE, min_size=1, max_size=4)), min_size=1, max_size=6),
    st.one_of(st.none(), st.integers(1, 100_000)),
    st.booleans(),
    st.sampled_from(["\n", "\r\n"]),
)
@in_one_directory
def test_jsonl_round_trip(
    tmp_path: Path,
    contents: list[str | list[Message]],
    limit: int | None,
    ascii_only: bool,
    newline: str,
) -> None:
    lines = [
        {"prompt": c, "max_tokens": limit}
        if isinstance(c, str)
        else {"messages": [{"role": m.role, "content": m.content} for m in c], "max_tokens": limit}
        for c in contents
    ]
    text = newline.join(json.dumps(line, ensure_ascii=ascii_only) for line in lines)
    prompts = load_file(file_of(tmp_path, "own.jsonl", text)).prompts
    assert [p.text if p.messages is None else list(p.messages) for p in prompts] == contents
    assert {p.max_tokens for p in prompts} == {limit}


JSON_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text()),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)),
    max_leaves=8,
)
KEYS = st.sampled_from(["prompt", "messages", "max_tokens", "body", "id", "line_comment", "role", "content"])


@given(st.one_of(JSON_VALUES.map(json.dumps), st.dictionaries(KEYS, JSON_VALUES).map(json.dumps), st.text()))
@settings(deadline=None)
def test_any_line_gives_a_prompt_or_a_one_line_refusal(line: str) -> None:
    prompts, said = outcome(parse_jsonl(line, "own.jsonl"))
    assert said.isprintable()
    for prompt in prompts:
        assert (prompt.text is None) != (prompt.messages is None)
        assert prompt.content.encode().strip()


@given(st.text())
@settings(deadline=None)
def test_any_text_gives_prompts_or_a_one_line_refusal(text: str) -> None:
    prompts, said = outcome(parse_txt(text, "own.txt"))
    assert said.isprintable()
    assert bool(prompts or said) == bool(text.strip())


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"prompt": "x"', "broken JSON at column 15 (Expecting ',' delimiter); mend the line"),
        ("[1, 2]", "a list instead of an object with `prompt` or `messages`"),
        ('"text"', "text instead of an object with `prompt` or `messages`"),
        ("[" * 200_000, "JSON that is nested too deeply or holds a number too long"),
        (
            '{"prompt": "x", "n": ' + "9" * 5000 + "}",
            "JSON that is nested too deeply or holds a number too long",
        ),
        ('{"text": "x"}', "has neither `prompt` nor `messages`; give one of them"),
        (
            '{"prompt": "x", "messages": [{"role": "user", "content": "x"}]}',
            "has both `prompt` and `messages`; give one of them",
        ),
        ('{"prompt": 3}', "`prompt` is a number; only text is allowed"),
        ('{"prompt": ["a", "b"]}', "`prompt` is a list; only text is allowed"),
        ('{"prompt": "  "}', "`prompt` is empty; write some text"),
        (
            '{"prompt": "\\ud800"}',
            "`prompt` holds half of a surrogate pair (\\ud800 to \\udfff); mend the escape",
        ),
        ('{"prompt": "a\\u0000"}', "`prompt` holds a NUL character; save the file as UTF-8 text"),
        ('{"messages": []}', "`messages` is empty; give a list of objects with role and content"),
        ('{"messages": "hi"}', "`messages` is text; give a list of objects with role and content"),
        ('{"messages": ["hi"]}', "`messages[0]` is text; an object with role and content is needed"),
        (
            '{"messages": [{"role": "us\\u001b[2Jer", "content": "x"}]}',
            '`messages[0]` has the role "user"; allowed are system, developer, user, assistant',
        ),
        (
            '{"messages": [{"content": "x"}]}',
            "`messages[0]` has the role missing or null; allowed are system, developer, user, assistant",
        ),
        (
            '{"messages": [{"role": "user", "content": null}]}',
            "`messages[0]`.content is missing or null; text or a list of text parts is allowed",
        ),
        (
            '{"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}',
            '`messages[0]`.content holds a part other than {"type": "text", "text": "..."}',
        ),
        (
            '{"messages": [{"role": "user", "content": ""}]}',
            "`messages` holds no text; give at least one message some content",
        ),
        ('{"prompt": "x", "max_tokens": 0}', "`max_tokens` is outside 1 to 100000"),
        ('{"prompt": "x", "max_tokens": "9"}', "`max_tokens` is text; a whole number is needed"),
        ('{"prompt": "x", "max_tokens": true}', "`max_tokens` is true or false; a whole number is needed"),
        (
            '{"prompt": "x", "line_comment": "#\\n"}',
            '`line_comment` must be what begins a comment line, such as "#" or "//"',
        ),
    ],
)
def test_a_bad_line_is_named_with_its_key(tmp_path: Path, line: str, said: str) -> None:
    assert line_refusal(tmp_path, line) == said


# files that cannot be used


def test_a_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "none.txt"
    assert refusal(path) == f"{path} does not exist; check the path of the prompt file"


@pytest.mark.parametrize("name", ["prompts.csv", "prompts", "prompts.json"])
def test_an_unsupported_extension(tmp_path: Path, name: str) -> None:
    assert "unknown kind of prompt file; use .txt (blank lines between) or .jsonl" in refusal(tmp_path / name)


@pytest.mark.parametrize("name", ["own.txt", "own.jsonl"])
@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", b" \n\r\n\t"])
def test_an_empty_file(tmp_path: Path, name: str, content: bytes) -> None:
    path = file_of(tmp_path, name, content)
    assert refusal(path) == f"{path} holds no prompt; write at least one into it"


def test_another_encoding(tmp_path: Path) -> None:
    path = file_of(tmp_path, "own.txt", "Gr\u00fc\u00dfe".encode("latin-1"))
    assert refusal(path) == f"{path} is not UTF-8 text (byte 2); save it as UTF-8"
    assert "is not UTF-8 text" in refusal(file_of(tmp_path, "utf16.txt", "hello".encode("utf-16")))
    assert "holds a NUL character" in refusal(file_of(tmp_path, "le.txt", "hello".encode("utf-16-le")))


def test_a_file_over_the_limit_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "huge.txt"
    with path.open("wb") as file:
        file.truncate(prompt_files.MAX_FILE_BYTES + 1)
    assert refusal(path) == f"{path} is larger than 50 MB; use a part of it as prompts"


def test_things_that_are_no_files(tmp_path: Path) -> None:
    directory = tmp_path / "dir.txt"
    directory.mkdir()
    assert "is not a regular file" in refusal(directory)
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    assert "is not a regular file" in refusal(pipe)
    with socket.socket(socket.AF_UNIX) as server:
        name = os.path.relpath(tmp_path / "s.txt")
        server.bind(name)
        assert "is not a regular file" in refusal(name)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_without_permission(tmp_path: Path) -> None:
    path = file_of(tmp_path, "own.txt", "x")
    path.chmod(0)
    assert refusal(path) == f"{path} cannot be read: Permission denied; check the path of the prompt file"


def test_paths_that_the_system_refuses(tmp_path: Path) -> None:
    # The rest of this reason is Python's own, and differs between its versions.
    assert re.search("cannot be read: .*embedded null", refusal("a\x00b.txt"))
    assert "cannot be read: File name too long" in refusal(tmp_path / ("x" * 300 + ".txt"))
    assert "cannot be read: Not a directory" in refusal(file_of(tmp_path, "f", "x") / "own.txt")
    assert "no such home directory" in refusal("~no-such-user-here/own.txt")


def test_the_home_directory_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    file_of(tmp_path, "own.txt", "mine")
    assert load_file("~/own.txt").prompts[0].content == "mine"


# order


@pytest.mark.parametrize("name", NAMES)
def test_the_first_round_is_the_file_and_each_round_has_every_prompt_once(name: str) -> None:
    workload = load_builtin(name)
    size = len(workload.prompts)
    sent = list(islice(PromptSequence(workload, seed=3), 3 * size))
    assert tuple(sent[:size]) == workload.prompts
    originals = [p.id for p in workload.prompts]
    for turn in (1, 2):
        ids = [p.id.split(" #")[0] for p in sent[turn * size : (turn + 1) * size]]
        assert ids != originals
        assert sorted(ids) == sorted(originals)


@pytest.mark.parametrize("name", NAMES)
def test_no_request_is_ever_repeated(name: str) -> None:
    sent = list(islice(PromptSequence(load_builtin(name)), 1000))
    assert len({p.content for p in sent}) == 1000
    assert len({p.id for p in sent}) == 1000


def test_the_order_depends_on_the_seed_alone() -> None:
    workload = load_builtin("chat")
    first, same, other = (list(islice(PromptSequence(workload, seed=s), 90)) for s in (1, 1, 2))
    assert first == same
    assert first != other
    order = PromptSequence(workload, seed=1)
    assert [order.at(n) for n in (80, 3, 41)] == [first[80], first[3], first[41]]


def test_an_order_begins_where_it_is_told_to() -> None:
    workload = load_builtin("chat")
    whole = list(islice(PromptSequence(workload, seed=1), 90))
    order = PromptSequence(workload, seed=1, start=40)
    assert list(islice(order, 50)) == whole[40:]
    assert order.sent == 90


@given(
    st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=6),
    st.sampled_from([None, "#"]),
    st.booleans(),
    st.integers(0, 2**31 - 1),
)
@settings(deadline=None)
def test_prompts_that_stand_in_the_file_twice_are_varied_too(
    texts: list[str],
    leader: str | None,
    raw: bool,
    seed: int,
) -> None:
    prompts = tuple(
        Prompt(id=str(i), text=t, line_comment=leader)
        if raw
        else Prompt(id=str(i), messages=(Message("user", t),))
        for i, t in enumerate(texts)
    )
    sent = list(islice(PromptSequence(Workload("own", "", prompts), seed=seed), 120))
    assert len({p.content for p in sent}) == 120


def test_an_order_with_depth_pads_every_request_differently() -> None:
    sent = list(islice(PromptSequence(load_builtin("chat"), depth=500), 60))
    assert len({p.content[:12] for p in sent}) == 60
    assert all(490 <= len(p.content) / 4 <= 560 for p in sent)


# variation


def test_variant_zero_is_the_prompt_itself() -> None:
    prompt = chat("hello")
    assert vary(prompt, 0) is prompt


def test_a_chat_gets_a_polite_line_before_its_first_user_message() -> None:
    prompt = Prompt(
        id="p",
        messages=(Message("system", "s"), Message("user", "one"), Message("user", "two")),
        max_tokens=7,
    )
    varied = vary(prompt, 1)
    assert varied == Prompt(
        id="p #2",
        messages=(
            Message("system", "s"),
            Message("user", "Please help me with this.\none"),
            Message("user", "two"),
        ),
        max_tokens=7,
    )
    assert "(Request 2.)" in vary(prompt, 13).content


def test_a_chat_without_a_user_is_varied_in_its_first_message() -> None:
    varied = vary(Prompt(id="p", messages=(Message("system", "s"),)), 2)
    assert varied.messages == (Message("system", "Hello, I need your help.\ns"),)


def test_raw_text_gets_a_comment_in_its_language() -> None:
    assert vary(Prompt(id="p", text="x = 1", line_comment="#"), 2).text == "# Revision 3\nx = 1"
    assert (
        vary(Prompt(id="p", text="#!/bin/sh\nls", line_comment="#"), 1).text == "#!/bin/sh\n# Revision 2\nls"
    )


def test_raw_text_of_an_unknown_language_gets_blank_lines() -> None:
    texts = [vary(Prompt(id="p", text="x"), n).text for n in range(300)]
    assert len(set(texts)) == 300
    assert {text.strip() for text in texts if text} == {"x"}
    assert texts[6] == " \n  \nx"


# padding


@pytest.mark.parametrize("name", ["code", "chat", "rewrite"])
@pytest.mark.parametrize("depth", [1000, 20_000])
def test_padding_reaches_about_the_wanted_depth(name: str, depth: int) -> None:
    prompt = load_builtin(name).prompts[0]
    assert 0.98 * depth <= len(pad(prompt, depth, index=5).content) / 4 <= depth + 50


def test_padding_counts_tokens_as_it_is_told() -> None:
    def words(text: str) -> int:
        return len(text.split())

    padded = pad(chat("What is the time?"), 3000, index=1, count=words)
    assert 3000 <= words(padded.content) <= 3030


def test_padding_ends_with_the_prompt_and_leaves_a_long_one_alone() -> None:
    prompt = chat("What is the time?")
    assert pad(prompt, 400, index=0).content.endswith("Now to something else.\n\nWhat is the time?")
    assert pad(prompt, 4, index=0) is prompt
    assert pad(prompt, 0, index=0) is prompt


def test_padding_of_code_is_a_comment() -> None:
    padded = pad(Prompt(id="p", text="SELECT 1;\n", line_comment="--"), 300, index=0).text
    assert padded is not None
    filler, _, rest = padded.partition("\n\n")
    assert rest == "SELECT 1;\n"
    assert all(line.startswith("-- ") for line in filler.split("\n"))


def test_padding_is_deterministic_and_differs_from_the_start() -> None:
    prompt = load_builtin("summarise").prompts[0]
    padded = [pad(prompt, 800, index=i).content for i in range(200)]
    assert padded[7] == pad(prompt, 800, index=7).content
    assert len({text[:8] for text in padded}) == 200
    assert all(a[0] != b[0] for a, b in pairwise(padded))


def test_filler_does_not_repeat_itself() -> None:
    text = pad(chat("x"), 8000, index=0).content
    found = re.findall(r"[^.]+\.", text)
    assert len(set(found)) / len(found) > 0.9
