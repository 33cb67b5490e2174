"""`manyarms report`: a folder of results as one page to look at."""

from __future__ import annotations

from pathlib import Path

from manyarms.cli.screen import out
from manyarms.report.html_report import write_report

__all__ = ["report_results"]


def report_results(*, folder: Path) -> None:
    """Write the page into the folder, and say where it is."""
    out.print(f"Look at {write_report(folder)}", markup=False, soft_wrap=True)
