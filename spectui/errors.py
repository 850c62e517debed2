"""The exception tree: every error a user can meet, each with what happened, to what, and what to do next.

    SpectuiError
      UsageError          input on the command line that cannot be used
      ProfileError        a profile that cannot be read, checked or saved
      StoreError          results that cannot be read or kept
        StoreBusy         another program keeps the file busy
        RecordError       one run or sweep that cannot be kept
      PromptsError        a prompt file that gives no usable prompt
      ModelFileError      a model file that is missing or unreadable
      BinaryError         no usable llama-server binary
      FlagError           a setting this binary has no flag for
      LaunchError         a server that did not become ready
      DemoError           the demo pair cannot be built
      ServerError         a server that answers wrongly, or not at all
        ServerGone        the connection is refused or was lost
          ServerDied      a server of ours ended by itself
        Unauthorized      the API key is missing or wrong
        Unsupported       the server does not offer this endpoint

The command line prints one line of these and exits 2; the dashboard shows them as findings.
"""

from __future__ import annotations

from typing import Final

INTERRUPTED: Final = 130
"""Exit status of what Ctrl-C or another signal ended."""


class SpectuiError(Exception):
    """Base of all; `str()` is one line that says what happened, to what, and what to do next."""


class UsageError(SpectuiError):
    """Input on the command line that cannot be used."""


class ProfileError(SpectuiError):
    """A profile that cannot be read, checked or saved; names the file and the key."""


class StoreError(SpectuiError):
    """Results that cannot be read or kept: a file that is damaged, newer, busy or write-protected."""


class StoreBusy(StoreError):  # noqa: N818
    """Another program keeps the file busy; the next change may succeed."""


class RecordError(StoreError):
    """One run or sweep that holds what cannot be kept, or was pruned meanwhile; the others can be kept."""


class PromptsError(SpectuiError):
    """A prompt file that is missing, unreadable or holds no prompt."""


class ModelFileError(SpectuiError):
    """A model file that is missing, truncated or not GGUF."""


class BinaryError(SpectuiError):
    """No usable llama-server binary."""


class FlagError(SpectuiError):
    """A setting that this binary has no flag for.

    `flag` is what was wanted and `nearest` the closest flag it does have, if any.
    """

    def __init__(self, message: str, *, flag: str, nearest: str | None = None) -> None:
        super().__init__(message)
        self.flag = flag
        self.nearest = nearest


class LaunchError(SpectuiError):
    """A server that ended or hung before it was ready.

    `code` is the finding's code (a launch finding of core.verdict), `log_tail` the server's last lines.
    """

    def __init__(self, message: str, *, code: str = "server-crashed", log_tail: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.log_tail = log_tail


class DemoError(SpectuiError):
    """The demo pair cannot be built: a package is missing or the disk is full."""


class ServerError(SpectuiError):
    """A server that answers wrongly, or not at all; `status` is the HTTP status if there was one."""

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class ServerGone(ServerError):  # noqa: N818  the name says what is the case, as httpx's StreamClosed does
    """The connection is refused or was lost."""


class ServerDied(ServerGone):
    """A server of ours ended by itself; `code` and `log_tail` as in LaunchError."""

    def __init__(self, message: str, *, code: str = "server-crashed", log_tail: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.log_tail = log_tail


class Unauthorized(ServerError):  # noqa: N818
    """The API key is missing or wrong."""


class Unsupported(ServerError):  # noqa: N818
    """The server does not offer this endpoint (started without --metrics or --slots)."""
