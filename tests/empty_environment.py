"""Install a wheel without extras into an environment of its own, and use it: `make build`.

Not a test of pytest's, because installing takes a minute and needs a package index.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

LIBRARY = """
import sys
from importlib.metadata import requires

import manyarms as ma

handle = ma.MOSSPlusPlus().live(n_arms=1_000_000, horizon=1000, seed=1)
for _ in range(50):
    pull = handle.ask()
    handle.tell(pull, float(pull.arm % 2))
assert not {"numba", "click", "matplotlib", "pyarrow"} & set(sys.modules), "live use imports more"
instance = ma.instances.planted(n=1000, alpha=0.2, horizon=500)
result = ma.simulate([ma.MOSS(), ma.MOSSPlusPlus()], instance, horizon=500, replications=4)
assert result.regret.shape == (2, 4, 100), result.regret.shape
extras = {line.partition("extra == ")[2].strip("'\\"") for line in requires("manyarms")} - {""}
assert extras == {"lab", "dask", "docs", "serve", "postgres"}, extras
print(result.summary())
"""


def main(wheel: Path) -> None:
    """Exit with an error where anything is not as it should be."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        scripts = Path(folder) / ("Scripts" if os.name == "nt" else "bin")
        install = [str(scripts / "python"), "-m", "pip", "install", "--quiet", str(wheel.resolve())]
        subprocess.run([*install, "--disable-pip-version-check"], check=True)
        environment = os.environ | {"MANYARMS_CACHE": folder}
        environment.pop("PYTHONPATH", None)
        subprocess.run(
            [scripts / "python", "-W", "error", "-c", LIBRARY],
            check=True,
            cwd=folder,
            env=environment,
        )
        command = subprocess.run(
            [scripts / "manyarms", "--version"],
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
            env=environment,
        )
    said = command.stdout + command.stderr
    sys.stdout.write(said)
    if command.returncode != 1 or "needs click" not in said or '"manyarms[lab]"' not in said:
        sys.exit("`manyarms --version` without extras must say what is missing.")
    sys.stdout.write(f"{wheel.name} installs and runs without extras.\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
