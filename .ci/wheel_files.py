"""Fails unless the wheel holds every file of the package and every example profile."""

from __future__ import annotations

import subprocess
import sys
import zipfile

tracked = subprocess.run(
    ["git", "ls-files", "--cached", "--others", "--exclude-standard", "spectui", "profiles"],
    check=True,
    capture_output=True,
    text=True,
).stdout.split()
expected = {f"spectui/{path}" if path.startswith("profiles/") else path for path in tracked}
missing = sorted(expected - set(zipfile.ZipFile(sys.argv[1]).namelist()))
if missing or not expected:
    sys.exit(f"not in the wheel: {', '.join(missing) or 'anything'}")
