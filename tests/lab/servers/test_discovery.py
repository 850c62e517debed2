from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from spectui.core.profile import ServerSettings, SpeculationSettings, TuningProfile
from spectui.lab.servers import discovery
from spectui.lab.servers.discovery import discover
from spectui.llama.http.wire import SlotInfo

URL = "http://127.0.0.1:8080"
PROFILE = TuningProfile(server=ServerSettings(url=URL, api_key_env="KEY"), description="mine").with_sampling(
    temperature=0.7
)
ON = (SlotInfo(id=0, is_processing=False, speculative=True, types=("draft-simple",)),)
UNUSED = (SlotInfo(id=0, is_processing=False, speculative=True),)
OFF_SLOTS = (SlotInfo(id=0, is_processing=False, speculative=False, types=()),)
BASE = ["/opt/llama/llama-server", "-m", "/models/t.gguf", "-c", "8192", "--port", "8080"]
DRAFT = ["-md", "/models/d.gguf", "--spec-type", "draft-simple"]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The command line of the process that listens at the address; empty where none can be seen."""
    words: list[str] = []

    def local(url: str) -> list[str] | None:
        assert url == URL
        return list(words) or None

    monkeypatch.setattr(discovery, "_local_command", local)
    return words


def test_what_the_user_said_wins(command: list[str]) -> None:
    command += [*BASE, *DRAFT, "--spec-draft-n-max", "9"]
    mine = PROFILE.with_speculation(mode="ngram-simple", ngram_length=8)
    found = discover(mine, ON, speculating=True)
    assert found.profile is mine
    assert found.length_known


def test_settings_come_from_the_flags(command: list[str]) -> None:
    command += [*BASE, *DRAFT, "--spec-draft-n-max", "9", "--spec-draft-p-min", "0.4", "-t", "6"]
    found = discover(PROFILE, ON, speculating=True)
    assert found.length_known
    speculation, server = found.profile.speculation, found.profile.server
    assert (speculation.mode, speculation.draft_model) == ("draft-simple", "/models/d.gguf")
    assert (speculation.draft_length, speculation.p_min) == (9, 0.4)
    assert (server.model, server.context, server.threads) == ("/models/t.gguf", 8192, 6)
    assert (server.url, server.api_key_env, server.port) == (URL, "KEY", None)
    assert server.binary == "/opt/llama/llama-server"
    assert found.profile.sampling == PROFILE.sampling
    assert found.profile.description == "mine"


def test_a_binary_that_the_user_named_stays(command: list[str]) -> None:
    command += [*BASE, *DRAFT]
    found = discover(PROFILE.with_server(binary="/mine/llama-server"), ON, speculating=True)
    assert found.profile.server.binary == "/mine/llama-server"


@pytest.mark.parametrize(
    ("flags", "known"),
    [
        ([], False),
        (["--spec-draft-n-max", "9"], False),
        (["--spec-draft-p-min", "0.0"], False),
        (["--spec-draft-n-max", "9", "--spec-draft-p-min", "0.0"], True),
        (["--draft-max", "9", "--draft-p-min", "0.1"], True),
        (["--draft_max", "9", "--draft_p_min", "0.1"], True),
    ],
)
def test_a_length_or_p_min_that_no_flag_names_is_not_known(
    command: list[str], flags: list[str], known: bool
) -> None:
    command += [*BASE, *DRAFT, *flags]
    found = discover(PROFILE, ON, speculating=True)
    assert found.profile.speculation.mode == "draft-simple"
    assert found.length_known is known


@pytest.mark.parametrize(("flags", "known"), [(["--spec-draft-n-max", "12"], True), ([], False)])
def test_an_ngram_mode_has_no_p_min(command: list[str], flags: list[str], known: bool) -> None:
    command += [*BASE, "--spec-type", "ngram-simple", *flags]
    found = discover(PROFILE, ON, speculating=True)
    assert found.profile.speculation.mode == "ngram-simple"
    assert found.length_known is known


def test_slots_that_speculate_overrule_a_command_that_does_not_ask_for_it(command: list[str]) -> None:
    """The environment or a preset asked for it."""
    command += BASE
    found = discover(PROFILE, ON, speculating=True)
    assert found.profile.speculation.mode == "draft-simple"
    assert not found.length_known
    assert found.profile.server.model == "/models/t.gguf"
    assert found.profile.server.context == 8192


def test_the_type_of_the_slots_is_given_in_its_current_name(command: list[str]) -> None:
    slots = (
        OFF_SLOTS[0],
        SlotInfo(id=1, is_processing=True, speculative=True, types=("ngram-map-k", "draft")),
    )
    assert discover(PROFILE, slots, speculating=True).profile.speculation.mode == "ngram-map-k"
    old = (SlotInfo(id=0, is_processing=True, speculative=True, types=("draft",)),)
    assert discover(PROFILE, old, speculating=True).profile.speculation.mode == "draft-simple"
    assert command == []


def test_slots_that_never_worked_leave_the_usual_mode(command: list[str]) -> None:
    found = discover(PROFILE, UNUSED, speculating=True)
    assert found.profile == PROFILE.with_speculation(mode="draft-simple")
    assert not found.length_known
    assert command == []


@pytest.mark.parametrize("speculating", [False, None])
def test_nothing_to_be_seen_is_off(command: list[str], speculating: bool | None) -> None:
    found = discover(PROFILE, (), speculating=speculating)
    assert found.profile is PROFILE
    assert found.length_known
    assert command == []


def test_a_plain_server_is_off_with_its_settings(command: list[str]) -> None:
    command += BASE
    found = discover(PROFILE, OFF_SLOTS, speculating=False)
    assert found.profile.speculation.mode == "off"
    assert found.profile.server.context == 8192
    assert found.length_known


def test_a_wish_that_the_slots_deny_stays_visible(command: list[str]) -> None:
    """The draft was loaded and is not used: what was asked for must show, so that the verdict can say so."""
    command += [*BASE, *DRAFT]
    found = discover(PROFILE, OFF_SLOTS, speculating=False)
    assert found.profile.speculation.mode == "draft-simple"


@pytest.mark.parametrize(
    "secret", [["--api-key", "sk-123"], ["--api-key=sk-123"], ["-hft", "sk-123"], ["--hf-token", "sk-123"]]
)
def test_secrets_of_the_command_line_are_dropped(command: list[str], secret: list[str]) -> None:
    command += [*BASE, *secret, "--metrics", *DRAFT]
    found = discover(PROFILE, ON, speculating=True)
    assert "sk-123" not in repr(found)
    assert not any("key" in word or "hf" in word for word in found.profile.server.extra_args)
    assert found.profile.speculation.draft_model == "/models/d.gguf"


def test_words_with_spaces_and_quotes_stay_whole(command: list[str]) -> None:
    path = '/models/my model\'s "best".gguf'
    command += ["/opt/my tools/llama-server", "-m", path, *DRAFT]
    found = discover(PROFILE, ON, speculating=True)
    assert found.profile.server.model == path
    assert found.profile.server.binary == "/opt/my tools/llama-server"


def test_a_command_that_cannot_be_read_is_as_good_as_none(command: list[str]) -> None:
    command += [*BASE, "--spec-draft-n-max", "many", "--spec-type", "draft-simple"]
    found = discover(PROFILE, ON, speculating=True)
    assert found.profile == PROFILE.with_speculation(mode="draft-simple")
    assert not found.length_known


def test_only_this_machine_is_looked_at() -> None:
    assert discovery._local_command("http://192.0.2.1:8080") is None
    assert discovery._local_command("http://127.0.0.1:9") is None
    assert SpeculationSettings().mode == "off"


class Shown:
    """A process as psutil shows it. `denied`: what it keeps to itself, as processes of other users do on macOS."""

    def __init__(self, *denied: str, name: str = "llama-server", port: int = 8080) -> None:
        self._denied = denied
        self._name = name
        self._port = port

    def _told(self, what: str, value: object) -> object:
        if what in self._denied:
            raise psutil.AccessDenied
        return value

    def name(self) -> object:
        return self._told("name", self._name)

    def net_connections(self, kind: str) -> object:
        assert kind == "inet"
        listening = SimpleNamespace(status=psutil.CONN_LISTEN, laddr=SimpleNamespace(port=self._port))
        return self._told("net_connections", [listening])

    def cmdline(self) -> object:
        return self._told("cmdline", list(BASE))

    def exe(self) -> object:
        return self._told("exe", BASE[0])

    def cwd(self) -> object:
        return self._told("cwd", "/work")

    def environ(self) -> object:
        return self._told("environ", {"LLAMA_ARG_THREADS": "4", "HOME": "/home/x"})


def shown(monkeypatch: pytest.MonkeyPatch, *processes: Shown) -> None:
    monkeypatch.setattr(psutil, "process_iter", lambda: iter(processes))


def test_a_process_that_hides_itself_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    shown(monkeypatch, Shown("name"), Shown("net_connections"), Shown(port=9), Shown(name="sshd"), Shown())
    assert discovery._local_command(URL) == BASE
    found = discovery.local_server(URL)
    assert found is not None
    assert (found.words, found.binary, found.folder) == (tuple(BASE), Path(BASE[0]), Path("/work"))
    assert found.environment == {"LLAMA_ARG_THREADS": "4"}


@pytest.mark.parametrize("denied", ["net_connections", "cmdline", "exe", "cwd", "environ"])
def test_what_the_system_does_not_show_is_no_local_server(
    monkeypatch: pytest.MonkeyPatch, denied: str
) -> None:
    shown(monkeypatch, Shown(denied))
    assert discovery.local_server(URL) is None


@pytest.mark.parametrize("denied", ["net_connections", "cmdline"])
def test_without_a_command_line_the_slots_are_all_that_is_known(
    monkeypatch: pytest.MonkeyPatch, denied: str
) -> None:
    shown(monkeypatch, Shown(denied))
    found = discover(PROFILE, ON, speculating=True)
    assert found.profile == PROFILE.with_speculation(mode="draft-simple")
    assert not found.length_known
