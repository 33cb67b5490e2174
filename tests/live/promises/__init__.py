"""What an experiment promises, as a small model, and a driver that tries to break it.

- `spec`: the settings of an experiment, and random ones.
- `model`: an experiment in plain Python, as its user understands it.
- `answers`: what a user can read.
- `promises`: each promise is a function with one sentence.
- `homes`: where an experiment runs: in memory, or recorded.
- `commands`: the calls that a user can make; `play` makes them, and checks all promises.
- `search`: random sequences of commands; a sequence that breaks a promise is shortened.
- `shop`: longer plays with one clearly best arm; `arrivals`: days on which many arms come.

`python -m tests.live.promises recorded 0 200` plays the seeds 0 to 199 on a recorded handle.
"""
