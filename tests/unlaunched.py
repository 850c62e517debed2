"""What stands in for a server of ours whose process a test does not need: a plan, and a scripted one to ask."""

from __future__ import annotations

from pathlib import Path

from spectui.core.profile import TuningProfile
from spectui.lab.servers.launcher import LaunchPlan
from spectui.lab.servers.server import AttachedServer
from spectui.llama.binary.capabilities import parse_help

CAPS = parse_help((Path(__file__).parent / "data" / "help" / "b10434.txt").read_text("utf-8"))


def plan_for(
    profile: TuningProfile, *, binary: Path = Path(__file__), argv: tuple[str, ...] = ("llama-server",)
) -> LaunchPlan:
    """A plan for this profile, of which nothing was asked."""
    return LaunchPlan(
        profile=profile,
        binary=binary,
        capabilities=CAPS,
        argv=argv,
        environment={},
        inherited_names=(),
        port=1,
    )


class Started(AttachedServer):
    """Stands in for a process of ours."""

    owned = True

    async def start(self, *, log_file: Path | None = None) -> None:
        """Look at the scripted server."""
        await self.connect()
