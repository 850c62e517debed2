"""The history screen: the runs that were measured, a filter over them, and two of them side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Final

from rich.table import Table
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.reactive import var
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import DataTable, Input, Static

from spectui.core.text import counted
from spectui.core.views.run_list import LIMIT, RunDetails, RunList, RunRow, marked, matching
from spectui.core.views.snapshot import Snapshot
from spectui.errors import StoreError
from spectui.tui.control.interface import Controller
from spectui.tui.keys import HISTORY
from spectui.tui.screens.dialog import Dialog
from spectui.tui.text import UNKNOWN, shown, speed, times
from spectui.tui.widgets.keybar import KeyBar

_EMPTY: Final = "Nothing was measured yet: send some traffic, and what it shows is kept here."
_NO_MATCH: Final = "No run has all of these words; escape drops the filter."
_MARK: Final = "mark"
_COLUMNS: Final = (
    "run",
    "started",
    "workload",
    "mode",
    "k",
    "tok/s",
    "actual",
    "",
    "alpha",
    "p_min",
    "temp",
    "requests",
    "from",
    "build",
    "target",
    "draft",
)
_WIDEST: Final = 34
"""Cells of a file's name."""


class HistoryScreen(Screen[None]):
    """A table of runs. The store is read by the controller, in a thread."""

    AUTO_FOCUS = "DataTable"
    CSS_PATH = "history.tcss"
    BINDINGS: ClassVar[list[BindingType]] = list(HISTORY)

    snapshot: var[Snapshot] = var(Snapshot())

    def __init__(self, controller: Controller) -> None:
        super().__init__()
        self._controller = controller
        self._runs: RunList | None = None
        self._marks: tuple[int, ...] = ()
        self._cells: dict[int, tuple[Text, ...]] = {}
        self._listed: tuple[int, ...] = ()

    def compose(self) -> ComposeResult:
        """From the top down."""
        yield Static("", id="head")
        yield Input(placeholder="words that a run must have, such as code draft-simple stale", id="filter")
        yield Static("reading the results", id="remark")
        yield DataTable[Text](cursor_type="row", id="runs")
        yield KeyBar(id="keys")

    def on_mount(self) -> None:
        """Read the runs."""
        self._table.display = False
        self._head()
        self.action_reload()

    @property
    def _table(self) -> DataTable[Text]:
        return self.query_one("#runs", DataTable)

    @property
    def _filter(self) -> Input:
        return self.query_one("#filter", Input)

    def action_reload(self) -> None:
        """Read the store again."""
        self.app.run_worker(
            self._read(), name="history", group="history", exclusive=True, exit_on_error=False
        )

    async def _read(self) -> None:
        try:
            self._runs = await self._controller.front.runs.runs(LIMIT)
        except StoreError as error:
            self._runs = None
            if self.is_attached:
                self._say_instead(str(error))
            return
        if self.is_attached:
            known = {row.id for row in self._runs.rows}
            self._marks = tuple(mark for mark in self._marks if mark in known)
            at = self._under_cursor
            self._lay_out(self._runs.rows)
            self._fill(at)

    def _lay_out(self, rows: Sequence[RunRow]) -> None:
        """Columns as wide as all runs need: left to itself the table would measure every cell after each key."""
        inks, table = self.app.theme_variables, self._table
        cells = {row.id: (self._mark_of(row.id), *_cells(row, inks)) for row in rows}
        table.clear(columns=True)
        self._cells, self._listed = cells, ()
        for index, name in enumerate(("", *_COLUMNS)):
            key = _MARK if index == 0 else name or "remark"
            widest = max((texts[index].cell_len for texts in cells.values()), default=0)
            table.add_column(name, key=key, width=max(1, len(name), widest))

    def _fill(self, at: int | None) -> None:
        """Show the runs that match, with the cursor on the run `at` where it is among them."""
        runs, table = self._runs, self._table
        if runs is None:
            return
        rows = matching(runs.rows, self._filter.value)
        ids = tuple(row.id for row in rows)
        with self.app.batch_update():
            if ids != self._listed:
                table.clear()
                for run in ids:
                    table.add_row(self._mark_of(run), *self._cells[run][1:], key=str(run))
                if at in ids:
                    table.move_cursor(row=ids.index(at))
                self._listed = ids
            self._head(len(rows))
            if not rows:
                self._say_instead(_NO_MATCH if runs.rows else _EMPTY)
            else:
                self.query_one("#remark").display = False
                table.display = True
                if not self._filter.has_focus:
                    table.focus()

    def _say_instead(self, text: str) -> None:
        self._table.display = False
        remark = self.query_one("#remark", Static)
        remark.display = True
        remark.update(Text(shown(text)))

    def _head(self, number: int | None = None) -> None:
        text = Text.assemble(("spectui", "bold"), "   history")
        if number is not None and self._runs is not None:
            total = len(self._runs.rows)
            text.append(
                f"   {number} of {counted(total, 'run')}"
                if number != total
                else f"   {counted(total, 'run')}"
            )
            if self._runs.cut:
                text.append(f", the newest {total}; spectui history lists older ones", "dim")
        if self._marks:
            text.append(f"   marked: {' and '.join(map(str, self._marks))}")
        self.query_one("#head", Static).update(text)

    def _mark_of(self, run: int) -> Text:
        return Text("●" if run in self._marks else " ", "bold")

    @property
    def _under_cursor(self) -> int | None:
        table = self._table
        if not table.row_count or not table.is_valid_coordinate(table.cursor_coordinate):
            return None
        key = table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value
        return None if key is None else int(key)

    @on(DataTable.RowSelected)
    def _selected(self) -> None:
        """Enter in the table, and a click."""
        self.action_mark()

    def action_mark(self) -> None:
        """Mark the run under the cursor, or take its mark away."""
        run = self._under_cursor
        if run is None:
            return
        before, self._marks = self._marks, marked(self._marks, run)
        table = self._table
        shown_rows = {key.value for key in table.rows}
        for each in set(before) ^ set(self._marks):
            if str(each) in shown_rows:
                table.update_cell(str(each), _MARK, self._mark_of(each))
        self._head(table.row_count)

    def action_compare(self) -> None:
        """Two marked runs side by side, the older one first; with one mark, that and the run under the cursor."""
        pair = set(self._marks)
        if len(pair) == 1 and self._under_cursor is not None:
            pair.add(self._under_cursor)
        if len(pair) != 2:
            self.notify("mark a run with space, and a second one or the cursor on it", markup=False)
            return
        a, b = sorted(pair)
        self.app.run_worker(
            self._compare(a, b), name="compare", group="history", exclusive=True, exit_on_error=False
        )

    async def _compare(self, a: int, b: int) -> None:
        details = await self._controller.front.runs.details(a, b)
        if self.is_current:
            self.app.push_screen(CompareScreen(details))

    def action_filter(self) -> None:
        """Type a filter."""
        self._filter.focus()

    @on(Input.Changed)
    def _typed(self) -> None:
        self._fill(self._under_cursor)

    @on(Input.Submitted)
    def _submitted(self) -> None:
        if self._table.display:
            self._table.focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Dim what needs runs while there are none."""
        if action in {"mark", "compare", "filter"} and not (self._runs is not None and self._runs.rows):
            return None
        return super().check_action(action, parameters)

    def action_back(self) -> None:
        """Drop the filter where there is one, else back to the dashboard."""
        if self._filter.value or self._filter.has_focus:
            self._filter.value = ""
            self._table.focus()
        else:
            self.dismiss()


class CompareScreen(Dialog[None]):
    """Two runs side by side; gives nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c", "cancel", "close", tooltip="Close", id="close", show=False)
    ]

    def __init__(self, details: RunDetails) -> None:
        super().__init__()
        self._details = details

    def dialog_title(self) -> str:
        """The title."""
        return f"run {self._details.a.id} and run {self._details.b.id}"

    def parts(self) -> Iterable[Widget]:
        """The ratio, the numbers, and what differs."""
        details = self._details
        remarks = [f"run {row.id} is {row.remark}" for row in (details.a, details.b) if row.remark]
        remarks += details.cautions
        sentence = details.sentence or "A speed is not known, so there is no ratio."
        yield VerticalScroll(
            Static(Text(shown(sentence), "bold")),
            *(Static(Text(shown(remark)), classes="problem") for remark in remarks),
            Static(numbers_table(details), classes="after"),
            Static(differences_table(details), classes="after"),
            id="scroll",
        )

    def on_mount(self) -> None:
        """Arrow keys scroll."""
        self.query_one("#scroll").focus()


def numbers_table(details: RunDetails) -> Table:
    """The numbers of both runs with their ratio."""
    table = Table(box=None, padding=(0, 2), pad_edge=False)
    table.add_column("")
    for name in (f"run {details.a.id}", f"run {details.b.id}", "b / a"):
        table.add_column(name, justify="right", no_wrap=True)
    for each in details.numbers:
        ratio = "" if each.name == "requests" else times(each.ratio)
        table.add_row(each.name, _number(each.a), _number(each.b), Text(ratio, "bold"))
    return table


def differences_table(details: RunDetails) -> Table:
    """What the runs differ in."""
    if not details.differences:
        table = Table.grid()
        table.add_row("Both ran under the same conditions.")
        return table
    table = Table(box=None, padding=(0, 2), pad_edge=False)
    for name in ("differs", f"run {details.a.id}", f"run {details.b.id}"):
        table.add_column(name, overflow="fold")
    for each in details.differences:
        table.add_row(*(Text(shown(text)) for text in (each.name, each.a, each.b)))
    return table


def _cells(row: RunRow, inks: Mapping[str, str]) -> tuple[Text, ...]:
    """In the order of the columns. inks: the theme's colours by name."""
    p_min = UNKNOWN if row.p_min is None else f"{row.p_min:g}"
    right = {
        "run": str(row.id),
        "k": UNKNOWN if row.k is None else str(row.k),
        "tok/s": speed(row.tokens_per_second),
        "actual": times(row.speedup),
        "alpha": UNKNOWN if row.alpha is None else f"{row.alpha:.2f}",
        "p_min": p_min,
        "temp": f"{row.temperature:g}",
        "requests": str(row.requests),
    }
    left = {
        "started": row.started,
        "from": row.source,
        "workload": row.workload,
        "mode": row.mode,
        "": row.remark,
        "build": row.build or UNKNOWN,
        "target": row.model or UNKNOWN,
        "draft": row.draft or UNKNOWN,
    }
    won = row.speedup is not None and row.speedup >= 1
    actual = "" if row.speedup is None else inks["success" if won else "error"]
    styles = {"actual": actual, "": inks["warning"]}
    cells = []
    for name in _COLUMNS:
        text = Text(right.get(name, left.get(name, "")), styles.get(name, ""), no_wrap=True)
        text.truncate(_WIDEST, overflow="ellipsis")
        text.justify = "right" if name in right else "left"
        cells.append(text)
    return tuple(cells)


def _number(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.4g}"
