"""Which model files keep a server from starting, and which only this machine's library cannot read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spectui.core.profile import ServerSettings, SpeculationSettings, TuningProfile
from spectui.errors import LaunchError
from spectui.lab.servers import model_check
from spectui.lab.servers.model_check import require_models
from spectui.llama.models.facts import ModelFacts, ModelProblem


@pytest.mark.parametrize(
    ("problem", "refused"),
    [
        ("t.gguf is no GGUF model file", True),
        ("t.gguf cannot be loaded: tensor 'x' data is not within the file bounds, model is corrupted", True),
        ("t.gguf cannot be loaded: unknown model architecture: 'llamx'", False),
        ("t.gguf cannot be loaded: error loading model vocabulary: unknown pre-tokenizer type: 'x'", False),
    ],
)
async def test_what_a_newer_server_may_read_is_let_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: str, *, refused: bool
) -> None:
    async def read_facts(paths: tuple[Path, ...], **_: Any) -> dict[Path, ModelFacts | ModelProblem]:
        return dict.fromkeys(paths, ModelProblem(problem))

    monkeypatch.setattr(model_check, "read_facts", read_facts)
    model = tmp_path / "t.gguf"
    model.write_text("weights")
    profile = TuningProfile(
        server=ServerSettings(model=str(model)), speculation=SpeculationSettings(mode="ngram-simple")
    )
    if refused:
        with pytest.raises(LaunchError, match=r"the target t\.gguf"):
            await require_models(profile, None)
    else:
        await require_models(profile, None)
