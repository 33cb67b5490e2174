"""Prompts evaluated by several worker processes, some of which crash.

Each worker asks a service for a prompt, evaluates it, and tells whether the answer was right. Some
workers crash during an evaluation and are started again. The experiment has a reward window: an
evaluation without a reward is abandoned after a second, and the policy continues without it.
Run it: `python examples/prompt_farm.py`.
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
CRASHES = 0.005  # the probability that a worker crashes in an evaluation


def accuracy(prompt: int) -> float:
    """Return a prompt's accuracy: 85 % for one prompt in a hundred, 10 to 60 % for the others."""
    dice = random.Random(prompt)
    return 0.85 if dice.random() < 0.01 else dice.uniform(0.1, 0.6)


def work(url: str, seed: int, crash_probability: float) -> None:
    """Evaluate prompts until all pulls are made, or until this worker crashes."""
    dice = random.Random(seed)
    with ma.Remote(url, "prompts", token=TOKEN) as farm:
        while True:
            try:
                pull = farm.ask()
            except ma.StoppedError:
                return  # all pulls of the horizon are made
            time.sleep(SECONDS)
            if dice.random() < crash_probability:
                os._exit(1)
            farm.tell(pull, float(dice.random() < accuracy(pull.arm)), again="ignore")


def run_farm(url: str) -> int:
    """Restart crashed workers until all have finished; return the number of crashes."""
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=work, args=(url, k, CRASHES)) for k in range(WORKERS)]
    started = len(workers)
    for worker in workers:
        worker.start()
    while workers:
        worker = workers.pop(0)
        worker.join()
        if worker.exitcode != 0:  # it crashed
            workers.append(context.Process(target=work, args=(url, started, CRASHES)))
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
        crashes = run_farm(url)
        progress, best = farm.progress(), farm.recommend()
        farm.close()
    print(f"{crashes} workers crashed, each during one evaluation; told: {progress.told}\n")
    print(f"{progress}\n\n{best}")
    print(f"Its accuracy is truly {accuracy(best.arm):.2f}.")


if __name__ == "__main__":
    main()
