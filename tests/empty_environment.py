"""Install a wheel or an sdist into a new environment and use it (`make build`).

First without extras, for live use, then with the extra `sim`, for a simulation. This is not a
pytest test, because installing takes a minute and needs a package index.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

LIVE = """
import importlib.util
import sys
from importlib.metadata import requires

import manyarms as ma

assert importlib.util.find_spec("numba") is None, "numba was installed"

def play(live, pulls):
    for _ in range(pulls):
        pull = live.ask()
        live.tell(pull, float(pull.arm % 2))

for policy in (ma.MOSSPlusPlus(), ma.Scout(), ma.policy("thompson")):
    play(policy.live(n_arms=1_000_000, horizon=1000, seed=1), 50)
with ma.Prospector().live(n_arms=1_000_000, seed=1, store="shop.db") as live:
    play(live, 500)
with ma.load("shop.db") as live:  # replayed without a compiler
    live.verdict()
    assert live.recommend().told > 1, live.recommend()
assert ma.Remote is not None
assert not {"click", "matplotlib", "pyarrow"} & set(sys.modules), "live use imports more"
instance = ma.instances.planted(n=1000, alpha=0.2, horizon=500)
try:
    ma.simulate(ma.MOSS(), instance, horizon=500)
except ma.MissingExtraError as error:
    assert 'pip install "manyarms[sim]"' in str(error), error
else:
    raise AssertionError("simulate must say that numba is missing")
extras = {line.partition("extra == ")[2].strip("'\\"") for line in requires("manyarms")} - {""}
assert extras == {"sim", "docs", "serve", "postgres", "cuda"}, extras
"""

SIMULATION = """
import manyarms as ma

instance = ma.instances.planted(n=1000, alpha=0.2, horizon=500)
result = ma.simulate([ma.MOSS(), ma.MOSSPlusPlus()], instance, horizon=500, replications=4)
assert result.regret.shape == (2, 4, 100), result.regret.shape
print(result.summary())
"""


def main(package: Path) -> None:
    """Exit with an error if anything fails."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        scripts = Path(folder) / ("Scripts" if os.name == "nt" else "bin")
        python = str(scripts / "python")
        environment = os.environ | {"MANYARMS_CACHE": folder}
        environment.pop("PYTHONPATH", None)

        def install(what: str) -> None:
            quietly = ["--quiet", "--disable-pip-version-check"]
            subprocess.run([python, "-m", "pip", "install", *quietly, what], check=True)

        def run(code: str) -> None:
            words = [python, "-W", "error", "-c", code]
            subprocess.run(words, check=True, cwd=folder, env=environment)

        install(str(package.resolve()))
        run(LIVE)
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
        if command.returncode != 1 or "needs click" not in said or '"manyarms[sim]"' not in said:
            sys.exit("`manyarms --version` without extras must say what is missing.")
        install(f"{package.resolve()}[sim]")
        run(SIMULATION)
    sys.stdout.write(f"{package.name} plays live without extras, and simulates with [sim].\n")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        main(Path(name))
