"""Prompts evaluated by a farm of workers, some of which die.

Each worker is a process that asks a service for a prompt, evaluates it, and tells whether the
answer was right. Now and then one dies in the middle of an evaluation, and is started again. It has
a name of its own, so with its first ask it gets the prompt back that it died with: in the end every
evaluation was made and counted once. Run it: `python examples/prompt_farm.py`.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import time

from served_captions import TOKEN, service

import manyarms as ma

PROMPTS = 20_000
EVALUATIONS = 1_500
WORKERS = 3
SECONDS = 0.002  # of an evaluation
DEATHS = 0.005  # the probability that a worker dies in an evaluation


def accuracy(prompt: int) -> float:
    """Return the truth: one prompt in a hundred answers 85 % right, the others 10 to 60 %."""
    dice = random.Random(prompt)
    return 0.85 if dice.random() < 0.01 else dice.uniform(0.1, 0.6)


def work(url: str, name: str, life: int, danger: float) -> None:
    """Evaluate prompts until all evaluations are given out, or this worker dies."""
    dice = random.Random(f"{name} {life}")
    with ma.Remote(url, "prompts", token=TOKEN, worker=name) as farm:
        while True:
            try:
                pull = farm.ask()
            except ma.StoppedError:
                return  # all evaluations were given out
            time.sleep(SECONDS)
            if dice.random() < danger:
                os._exit(1)
            farm.tell(pull, float(dice.random() < accuracy(pull.arm)), again="ignore")


def run_farm(url: str) -> int:
    """Keep all workers going until each has ended well; return how many died."""
    context, deaths = multiprocessing.get_context("spawn"), 0
    alive = {}
    for number in range(WORKERS):
        name = f"worker {number}"
        alive[name] = context.Process(target=work, args=(url, name, 0, DEATHS))
        alive[name].start()
    while alive:
        time.sleep(0.02)
        for name, process in list(alive.items()):
            if process.exitcode == 0:
                del alive[name]
            elif process.exitcode is not None:
                deaths += 1
                alive[name] = context.Process(target=work, args=(url, name, deaths, DEATHS))
                alive[name].start()
    return deaths


def main() -> None:
    print(f"{PROMPTS} prompts, {EVALUATIONS} evaluations, {WORKERS} workers")
    with service() as url:
        farm = ma.Remote.create(
            url, "prompts", "empmoss++", n_arms=PROMPTS, horizon=EVALUATIONS, token=TOKEN
        )
        deaths = run_farm(url)
        progress, best = farm.progress(), farm.recommend()
        farm.close()
    print(f"{deaths} workers died; evaluations lost: {EVALUATIONS - progress.told}\n")
    print(f"{progress}\n\n{best}")
    print(f"Its accuracy is truly {accuracy(best.arm):.2f}.")


if __name__ == "__main__":
    main()
