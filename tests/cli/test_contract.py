"""The headless contract: every command that prints JSON has a model, keeps to it, and its field names stay."""

from __future__ import annotations

import asyncio
import json
import math
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
import pytest
from click.testing import CliRunner
from pydantic import BaseModel, ValidationError

from spectui.cli.main import cli, main
from spectui.cli.output import json_text
from spectui.core.bet.estimates import Estimate
from spectui.core.profile import ServerSettings, TuningProfile
from spectui.core.text import counted
from spectui.lab.experiments.measure import Measurer
from spectui.lab.measuring.probe import ProbeResult
from spectui.lab.reports.contract import CONTRACT
from spectui.lab.reports.contract_measure import ProbeJson
from spectui.lab.reports.contract_types import contract_values
from spectui.store.paths import Folders
from spectui.store.profiles import save
from spectui.store.records import RunConditions, RunSummary
from spectui.store.results import ResultStore
from tests.contract import printed
from tests.scripted_server import Script, ScriptedServer
from tests.sweep_play import played_sweeps

DATA: Final = Path(__file__).parents[1] / "data"
FIELDS: Final = DATA / "contract_fields.json"
"""Field names of every model; a name may be added here and never leaves."""
ON_SERVERS: Final = {
    "measure": "measure URL --runs 2 --tokens 20 --baseline 40 --json",
    "doctor": "doctor URL --json",
    "ab": "ab URL URL2 --runs 8 --tokens 20 --json",
    "concurrency": "concurrency URL --levels 1,2 --tokens 20 --baseline URL2 --json",
}
ALONE: Final = {
    "probe": "probe http://127.0.0.1:1 --n 1,2 --json",
    "predict": "predict --alpha 0.7 --c 0.1 --json",
    "explain": "explain --baseline 36 --measured 30.89 --k 8 --ratio 0.11 --json",
    "check": "check LINE --help-text HELP --json",
    "sweep": "sweep PROFILE --lookup 4 --length 8,16 --runs 2 --json",
    "sweep --plan": "sweep PROFILE --lookup 4 --length 8,16 --plan --json",
    "export --format json": "export 1 --format json",
    "history": "history --json",
    "history show": "history show 1 --json",
    "history compare": "history compare 1 2 --json",
    "history export --format json": "history export --format json",
    "history prune": "history prune --keep 1 --json",
    "profiles list": "profiles list --json",
}


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Every command by its name, groups that do something on their own included."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield " ".join((*path, name)), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


def printing() -> Iterator[str]:
    """The commands that can print JSON, as the contract names them."""
    for name, command in commands(cli):
        for option in command.params:
            if "--json" in option.opts:
                yield name
            if isinstance(option.type, click.Choice) and "json" in option.type.choices:
                yield f"{name} {option.opts[0]} json"


def parts_of(model: type[BaseModel]) -> dict[str, dict[str, Any]]:
    """The fields of a model and of all that it holds, by the name of the model."""
    schema = model.model_json_schema()
    parts = {model.__name__: schema, **schema.get("$defs", {})}
    return {name: part["properties"] for name, part in parts.items()}


def test_every_command_that_prints_json_has_a_model_and_is_tried_here() -> None:
    assert {*printing(), "sweep --plan"} == set(CONTRACT) == set(ON_SERVERS) | set(ALONE)


def test_names_stay() -> None:
    kept: dict[str, list[str]] = json.loads(FIELDS.read_text("utf-8"))
    now = {name: sorted(fields) for model in CONTRACT.values() for name, fields in parts_of(model).items()}
    gone = [f"{name}.{field}" for name in kept for field in kept[name] if field not in now.get(name, ())]
    assert not gone, (
        f"the contract lost {counted(len(gone), 'field')} that programs may read: {', '.join(gone)}"
    )
    assert now == kept, "new names are welcome: write them into contract_fields.json"


@pytest.mark.parametrize("command", CONTRACT)
def test_every_field_says_what_it_means(command: str) -> None:
    for name, fields in parts_of(CONTRACT[command]).items():
        assert [f"{name}.{field}" for field, schema in fields.items() if not schema.get("description")] == []


@pytest.mark.parametrize("command", ON_SERVERS)
async def test_what_is_printed_of_servers_is_of_its_model(command: str) -> None:
    async with (
        ScriptedServer(Script(k=4, slots=2, pass_ms=20.0)) as server,
        ScriptedServer(Script(k=0, slots=2, pass_ms=10.0)) as other,
    ):
        places = {"URL": server.url, "URL2": other.url}
        words = [places.get(word, word) for word in ON_SERVERS[command].split()]
        done = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-m", "spectui", *words],
            capture_output=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert list(printed(done.stdout, *words)) == list(CONTRACT[command].model_fields)


@pytest.mark.parametrize("command", ALONE)
def test_what_is_printed_without_a_server_is_of_its_model(
    command: str, server_binary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def probed(*_asked: object) -> ProbeResult:
        return ProbeResult(t1_ms=20.0, v={2: 1.1}, dropped=(1,))

    monkeypatch.setattr(Measurer, "probe", probed)
    played_sweeps(monkeypatch)
    profile, places = TuningProfile(server=ServerSettings(model="/m/t.gguf")), Folders.default()
    save(profile.with_server(binary=str(server_binary)), tmp_path / "own.toml", places)
    store = ResultStore.default(places)
    for at in range(2):
        number = store.begin_run(RunConditions(profile=profile, build="b10434"), at=at)
        speed = Estimate(value=30.0, low=29.0, high=31.0)
        store.end_run(number, RunSummary(requests=5, tokens_per_second=speed), at=at + 1)
    own = {
        "PROFILE": str(tmp_path / "own.toml"),
        "LINE": "llama-server -m t -md d --draft-max 4",
        "HELP": str(DATA / "help" / "b10434.txt"),
    }
    sweep, words = ([own.get(word, word) for word in ALONE[name].split()] for name in ("sweep", command))
    if words[0] == "export":
        assert CliRunner().invoke(cli, sweep).exit_code == 0
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == (1 if command == "check" else 0), done.output
    assert list(printed(done.stdout, *words)) == list(CONTRACT[command].model_fields)


@pytest.mark.parametrize("command", CONTRACT)
def test_the_schema_of_each_command_is_printed(command: str) -> None:
    done = CliRunner().invoke(cli, ["schema", *command.split()])
    assert done.exit_code == 0
    assert json.loads(done.output) == CONTRACT[command].model_json_schema()


def test_without_a_command_all_are_listed_with_a_line_each() -> None:
    lines = CliRunner().invoke(cli, ["schema"]).output.splitlines()
    assert [line.split("  ")[0] for line in lines] == list(CONTRACT)
    assert all(line.endswith(".") for line in lines)


@pytest.mark.parametrize("command", ["export", "history export"])
def test_a_command_of_several_formats_is_found_by_its_name(command: str) -> None:
    done = CliRunner().invoke(cli, ["schema", *command.split()])
    assert json.loads(done.output) == CONTRACT[f"{command} --format json"].model_json_schema()


def test_a_command_that_prints_no_json_has_no_schema(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["schema", "profiles", "show"])
    out, err = capsys.readouterr()
    assert (ended.value.code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("spectui: schema: no command 'profiles show' prints JSON; there is measure, ")


@pytest.mark.parametrize("wrong", [{"t1_ms": 1.0}, {"t1_ms": "1", "v": {}}, {"t1_ms": 1.0, "v": {}, "w": 2}])
def test_a_field_too_few_or_too_many_and_another_type_break_the_contract(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        printed(json.dumps(wrong), "probe")


def test_a_number_that_json_does_not_have_is_null() -> None:
    text = json_text({"t1_ms": math.inf, "v": {"1": -math.inf, "2": math.nan, "3": 1.5, "\u00e4": "NaN"}})
    assert text == '{"t1_ms": null, "v": {"1": null, "2": null, "3": 1.5, "\u00e4": "NaN"}}'


@dataclass
class Probed:
    t1_ms: Estimate | None


def test_a_model_is_filled_by_name_from_the_first_object_that_has_it() -> None:
    found = Probed(t1_ms=Estimate(value=20.0)), Probed(t1_ms=None)
    assert contract_values(ProbeJson, object(), *found, v={"1": 1.0}) == {"t1_ms": 20.0, "v": {"1": 1.0}}
    with pytest.raises(AttributeError):
        contract_values(ProbeJson, *found)
