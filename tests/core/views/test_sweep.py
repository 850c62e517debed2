from __future__ import annotations

from spectui.core.bet.estimates import Estimate
from spectui.core.views.heatmap import CellState, HeatBlock, HeatCell, HeatRow
from spectui.core.views.sweep import ConditionMap, SweepPlan, SweepStage, SweepView, export_command

PLAN = SweepPlan(cells=3, starts=(2, 5), seconds=(60.0, 90.0), tokens=200, speed=20.0, measured=False)


def test_busy_stages_hold_the_device() -> None:
    busy = {stage for stage in SweepStage if SweepView(stage=stage).busy}
    assert busy == {
        SweepStage.STARTING,
        SweepStage.RUNNING,
        SweepStage.PAUSING,
        SweepStage.PAUSED,
        SweepStage.STOPPING,
    }


def test_only_a_planned_sweep_of_a_server_of_ours_can_start() -> None:
    assert SweepView(plan=PLAN).startable
    assert SweepView(plan=PLAN, stage=SweepStage.STOPPED).startable
    assert not SweepView().startable
    assert not SweepView(plan=PLAN, stage=SweepStage.PAUSED).startable
    assert not SweepView(plan=PLAN, command="spectui sweep --resume 3").startable


def test_the_top_is_measured_not_predicted() -> None:
    def cell(state: CellState, value: float) -> HeatCell:
        return HeatCell(state, Estimate(value=value))

    cells = (cell(CellState.PREDICTED, 3.0), cell(CellState.MEASURED, 1.2), cell(CellState.MEASURED, 1.4))
    block = HeatBlock("k", (1, 2, 4), (HeatRow("draft-simple", cells),))
    assert ConditionMap(name="code", blocks=(block,)).top == 1.4
    assert ConditionMap(name="code").top is None


def test_the_export_names_the_sweep() -> None:
    assert export_command(7) == "spectui export 7 --format preset models.ini"
