"""Prompts evaluated by a farm of workers, some of which die.

Each worker is a process that asks a service for a prompt, evaluates it, and tells whether the
answer was right. Now and then one dies in the middle of an evaluation, and is started again. The
experiment has a window: an evaluation whose reward has not come after a second is abandoned, and
the policy goes on without it. Run it: `python examples/prompt_farm.py`.
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
WINDOW = 1.0  # seconds after which an evaluation without a reward is abandoned
DEATHS = 0.005  # the probability that a worker dies in an evaluation


def accuracy(prompt: int) -> float:
    """Return the truth: one prompt in a hundred answers 85 % right, the others 10 to 60 %."""
    dice = random.Random(prompt)
    return 0.85 if dice.random() < 0.01 else dice.uniform(0.1, 0.6)


def work(url: str, seed: int, danger: float) -> None:
    """Evaluate prompts until all evaluations are given out, or this worker dies."""
    dice = random.Random(seed)
    with ma.Remote(url, "prompts", token=TOKEN) as farm:
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
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=work, args=(url, k, DEATHS)) for k in range(WORKERS)]
    started = len(workers)
    for worker in workers:
        worker.start()
    while workers:
        worker = workers.pop(0)
        worker.join()
        if worker.exitcode != 0:  # it died
            workers.append(context.Process(target=work, args=(url, started, DEATHS)))
            workers[-1].start()
            started += 1
    return started - WORKERS


def main() -> None:
    print(f"{PROMPTS} prompts, {EVALUATIONS} evaluations, {WORKERS} workers")
    with service() as url:
        farm = ma.Remote.create(
            url,
            "prompts",
            "empmoss++",
            n_arms=PROMPTS,
            horizon=EVALUATIONS,
            window=WINDOW,
            token=TOKEN,
        )
        deaths = run_farm(url)
        progress, best = farm.progress(), farm.recommend()
        farm.close()
    print(f"{deaths} workers died, each with one evaluation; told: {progress.told}\n")
    print(f"{progress}\n\n{best}")
    print(f"Its accuracy is truly {accuracy(best.arm):.2f}.")


if __name__ == "__main__":
    main()
