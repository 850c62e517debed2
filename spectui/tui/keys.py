"""Every key of the main screens in tables; footer, help and palette are made from them."""

from __future__ import annotations

from typing import Final

from textual.binding import Binding

from spectui.core.views.sessions import MAX_SESSIONS

SETTINGS: Final = Binding.Group("settings", compact=True)
LENGTH: Final = Binding.Group("length", compact=True)
MEASURE: Final = Binding.Group("measure", compact=True)
SERVER: Final = Binding.Group("server", compact=True)
VIEW: Final = Binding.Group("view", compact=True)
FILES: Final = Binding.Group("profiles", compact=True)
SESSIONS: Final = Binding.Group("sessions", compact=True)
COMPARE: Final = Binding.Group("compare", compact=True)
AB_GROUP: Final = Binding.Group("on A/B", compact=True)
SWEEP_GROUP: Final = Binding.Group("on the sweep", compact=True)
HISTORY_GROUP: Final = Binding.Group("in the history", compact=True)
GENERAL: Final = Binding.Group("general", compact=True)


def _key(
    keys: str,
    action: str,
    description: str,
    tooltip: str,
    group: Binding.Group,
    *,
    display: str | None = None,
    show: bool = False,
) -> Binding:
    return Binding(
        keys,
        action,
        description,
        show=show,
        key_display=display,
        tooltip=tooltip,
        id=action.replace("(-1)", "_down").replace("(1)", "_up"),
        group=group,
    )


_GENERAL: Final = (
    Binding(
        "question_mark",
        "app.help",
        "help",
        tooltip="Keys, glossary",
        id="help",
        group=GENERAL,
    ),
    Binding("q", "app.quit", "quit", tooltip="Stop our servers and leave", id="quit", group=GENERAL),
)

_NUMBERS: Final = tuple(
    Binding(
        str(number),
        f"session({number})",
        f"session {number}",
        show=False,
        tooltip=f"Bring session {number} to the front" + "; 2 to 9 bring the others" * (number == 1),
        id=f"session_{number}",
        group=SESSIONS,
        system=number > 1,
    )
    for number in range(1, MAX_SESSIONS + 1)
)
"""Help shows the first for all of them, the palette those that there are."""

DASHBOARD: Final = [
    _key("r", "restart", "restart", "Restart the server with the staged settings", SERVER, show=True),
    _key("B", "apply_best", "best", "Apply the recommended settings and restart", SERVER, show=True),
    _key("u", "undo", "undo", "Back to the settings that last ran", SERVER, show=True),
    _key(
        "space", "traffic", "traffic", "Start or stop the test traffic", MEASURE, display="\u2423", show=True
    ),
    _key("b", "baseline", "baseline", "Measure plain speed on the same prompts", MEASURE, show=True),
    _key("v", "probe", "probe", "Measure what checking n tokens in one pass costs", MEASURE),
    _key("n", "mode", "mode", "Choose how tokens are drafted, or off", SETTINGS),
    _key("d", "draft", "draft", "Choose the draft model", SETTINGS),
    _key(
        "left_square_bracket,comma",
        "length(-1)",
        "shorter",
        "Draft fewer tokens per pass",
        SETTINGS,
        display="[",
    ),
    _key(
        "right_square_bracket,full_stop",
        "length(1)",
        "longer",
        "Draft more tokens per pass",
        SETTINGS,
        display="]",
    ),
    _key("p", "p_min", "p_min", "Choose p_min, or the lookup length of an n-gram mode", SETTINGS),
    _key("t", "temperature(-1)", "cooler", "Temperature down by 0.1; applies at once", SETTINGS),
    _key("T", "temperature(1)", "warmer", "Temperature up by 0.1; applies at once", SETTINGS),
    _key("w", "workload", "workload", "Choose what is sent; applies at once", SETTINGS),
    _key("c", "concurrency", "concurrency", "Choose how many requests are in flight", SETTINGS),
    _key("g", "next_chart", "charts", "Show the next chart alone, then all again", VIEW, show=True),
    _key("o", "written", "written", "Show what the model just wrote", VIEW, show=True),
    _key("i", "log", "log", "Show the server's log", VIEW, show=True),
    _key("x", "command", "command", "Show the staged command line whole", VIEW),
    _key("s", "save", "save", "Save the staged settings as a profile", FILES, show=True),
    _key("l", "load", "load", "Load a profile and start it", FILES, show=True),
    _key("a", "ab", "A/B", "Compare two configurations side by side", COMPARE, show=True),
    _key("S", "sweep", "sweep", "Find the best setting of each workload", COMPARE, show=True),
    _key("h", "history", "history", "Look at the runs that were measured", COMPARE),
    *_NUMBERS,
    _key("N", "new_session", "new", "Open a profile in a further session, beside this one", SESSIONS),
    _key("A", "attach_session", "attach", "Attach to a server in a further session", SESSIONS),
    _key("X", "close_session", "close", "Close this session; a server of ours ends", SESSIONS),
    *_GENERAL,
]
"""Bindings of the main screen."""

AB: Final = [
    _key("space", "run", "run", "Compare A and B, or end that", AB_GROUP, display="\u2423", show=True),
    _key("l", "choose", "take B", "Take a saved profile as B", AB_GROUP, show=True),
    _key("1,left", "mark('a')", "A", "Choose A; the left arrow as well", AB_GROUP, show=True),
    _key("2,right", "mark('b')", "B", "Choose B; the right arrow as well", AB_GROUP, show=True),
    _key("enter", "apply", "apply", "Stage the arm that is chosen, else the faster one", AB_GROUP, show=True),
    _key("escape,a", "back", "back", "Back to the dashboard; a run goes on", AB_GROUP, show=True),
    *_GENERAL,
]
"""Bindings of the A/B screen."""

SWEEP: Final = [
    _key(
        "space",
        "run",
        "start/pause",
        "Start the sweep or go on with it; pause it after the cell that is measured",
        SWEEP_GROUP,
        display="\u2423",
        show=True,
    ),
    _key("s", "stop", "stop", "End the sweep; it can go on later where it was", SWEEP_GROUP, show=True),
    _key(
        "enter,B",
        "apply",
        "apply",
        "Restart with what is recommended for the workload in front",
        SWEEP_GROUP,
        show=True,
    ),
    _key("o", "open", "open", "Open a kept sweep, to look at it or to go on", SWEEP_GROUP, show=True),
    _key("escape,S", "back", "back", "Back to the dashboard; a sweep goes on", SWEEP_GROUP, show=True),
    _key("w", "workloads", "workloads", "Choose the workloads", SWEEP_GROUP, show=True),
    _key("n", "modes", "modes", "Choose the modes", SWEEP_GROUP, show=True),
    _key("k", "lengths", "lengths", "Choose the draft lengths", SWEEP_GROUP, show=True),
    _key("p", "p_mins", "p_min", "Choose the values of p_min", SWEEP_GROUP, show=True),
    _key("tab,right", "front(1)", "next", "Bring the next workload to the front", SWEEP_GROUP),
    _key("shift+tab,left", "front(-1)", "previous", "Bring the workload before it to the front", SWEEP_GROUP),
    _key("up", "scroll(-1)", "up", "Scroll the heat map up", SWEEP_GROUP),
    _key("down", "scroll(1)", "down", "Scroll the heat map down", SWEEP_GROUP),
    *_GENERAL,
]
"""Bindings of the sweep screen."""

HISTORY: Final = [
    _key(
        "space,enter",
        "mark",
        "mark",
        "Mark the run for a comparison; two at most",
        HISTORY_GROUP,
        display="\u2423",
        show=True,
    ),
    _key(
        "c",
        "compare",
        "compare",
        "Put the two marked runs side by side, or one and that under the cursor",
        HISTORY_GROUP,
        show=True,
    ),
    _key("slash", "filter", "filter", "Type words that a run must have", HISTORY_GROUP, show=True),
    _key("r", "reload", "reload", "Read the results again", HISTORY_GROUP, show=True),
    _key("escape,h", "back", "back", "Drop the filter, else back to the dashboard", HISTORY_GROUP, show=True),
    *_GENERAL,
]
"""Bindings of the history screen."""

BY_SCREEN: Final = {
    "DashboardScreen": DASHBOARD,
    "AbScreen": AB,
    "SweepScreen": SWEEP,
    "HistoryScreen": HISTORY,
}
"""Bindings by the name of their screen's class, so that looking them up imports no screen."""
