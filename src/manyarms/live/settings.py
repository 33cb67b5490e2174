"""The settings of an experiment, which are fixed when it begins and stored with it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from manyarms.core.checks import check_flag, check_int, check_number, shown
from manyarms.core.memory import SPARSE
from manyarms.core.scale import Scale
from manyarms.errors import ManyarmsError, ParameterError, SavedFileError
from manyarms.inference.question import check_setting
from manyarms.live.arms import check_name
from manyarms.live.checks import (
    MOST_HORIZON,
    check_first_draws,
    check_horizon,
    check_range,
    check_reward,
    check_reward_name,
)
from manyarms.protocol.policy import Policy
from manyarms.protocol.registry import described_policy, restored_policy
from manyarms.protocol.scales import given_sigma, scale_of

SHARE = 0.05  # default share of the control
MOST_SHARE = 0.5
SHORTEST_WINDOW = 0.1  # seconds
NAME_KINDS = (None, "text", "integers")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings with which an experiment begins.

    Attributes
    ----------
    policy, horizon, seed, reward_range, control, share, reward, epsilon, window, missing, hold
        As for `Live`.
    n_arms
        The number of arms at the beginning; 0 if the first ones are added later.
    names
        The type of the names of arms: "text", "integers", or None if arms have numbers.
    """

    policy: Policy
    n_arms: int
    names: str | None = None
    horizon: int | None = None
    seed: int = 0
    reward_range: tuple[float, float] | None = (0.0, 1.0)
    control: str | int | None = None
    share: float = SHARE
    reward: str = ""
    epsilon: float | str | None = None
    window: float | None = None
    missing: float | None = None
    hold: bool = False

    @property
    def scale(self) -> Scale:
        """The scale of rewards in all seasons: the range, or the first policy's sigma."""
        return scale_of(self.policy, self.reward_range)

    def scaled(self, policy: Policy) -> Policy:
        """Return a policy of any season for the rewards of this experiment, or raise."""
        other, scale = given_sigma(policy), self.scale
        if self.reward_range is None and other not in (None, scale.sigma):
            raise ParameterError(
                f"`sigma` must be {scale.sigma:g} in every season, because the rewards have no "
                f"range and sigma is their scale, got {other:g} for {policy}. Leave it out, or "
                f"begin another experiment and observe the rewards there."
            )
        return policy.with_reward_range(self.reward_range, given_sigma(self.policy))

    def new_state(self, policy: Policy, n_arms: int, horizon: int | None) -> Any:
        """Return the state of a policy of any season, or raise."""
        pulls = horizon or MOST_HORIZON
        return self.scaled(policy).new_state(SPARSE, n_arms=n_arms, pulls=pulls)

    def to_spec(self) -> dict[str, Any]:
        """Return the settings as JSON."""
        spec = {field.name: getattr(self, field.name) for field in fields(self)}
        limits = self.reward_range
        return spec | {
            "policy": described_policy(self.policy),
            "reward_range": None if limits is None else list(limits),
        }


def check_settings(policy: Policy, **given: Any) -> Settings:
    """Return checked settings, or raise."""
    limits = check_range(given["reward_range"])
    sigma = given_sigma(policy)
    policy.with_reward_range(limits, sigma)  # it must be able to play these rewards
    if limits is None and sigma is None:
        raise ParameterError(
            f"`reward_range` must be given for {policy}, got None: intervals need the range of the "
            f"rewards, or the `sigma` of the policy, and {policy} has none.",
            parameter="reward_range",
        )
    check_first_draws(policy, given["n_arms"] or 1, given["horizon"])
    compared = _check_control(given["control"], given["share"])
    window, missing = given["window"], given["missing"]
    hold = check_flag("hold", given["hold"])
    if window is None and (missing is not None or hold):
        name = "hold" if missing is None else "missing"
        raise ParameterError(
            f"`{name}` needs `window`, got {shown(given[name])}. Also pass `window`, the number of "
            f"seconds that a reward may take."
        )
    return Settings(
        policy=policy,
        n_arms=given["n_arms"],
        names=given["names"],
        horizon=check_horizon(policy, given["horizon"]),
        seed=check_int("seed", given["seed"], at_most=2**64 - 1),
        reward_range=limits,
        control=None if compared is None else compared[0],
        share=SHARE if compared is None else compared[1],
        reward=check_reward_name(given["reward"]),
        epsilon=check_setting(given["epsilon"], limits),
        window=None if window is None else check_number("window", window, at_least=SHORTEST_WINDOW),
        missing=None if missing is None else check_reward(missing, limits, "fill in"),
        hold=hold,
    )


def _check_control(control: Any, share: Any) -> tuple[str | int, float] | None:
    """Return a control's name and its share of the pulls, or raise; None without a control."""
    if control is None:
        if share != SHARE:
            raise ParameterError(
                f"`share` needs `control`, got share={shown(share)} without a control. Pass "
                f"`control`, too."
            )
        return None
    name = check_name(control, "control", "a string or an integer")
    return name, check_number("share", share, above=0.0, at_most=MOST_SHARE)


def settings_from(spec: dict[str, Any], policy: Policy | None, what: str) -> Settings:
    """Return the recorded settings; use `policy` if it is the recorded one."""
    try:
        known = {field.name: spec[field.name] for field in fields(Settings)}
        if known["names"] not in NAME_KINDS:
            raise ValueError(f"names of arms are {shown(known['names'])}")
        check_int("n_arms", known["n_arms"])
        known.pop("policy")
        own = recorded_policy(spec["policy"], policy, what)
        return check_settings(own, **known)
    except SavedFileError:
        raise
    except (ManyarmsError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise SavedFileError(
            f"{what} has settings that this version of manyarms cannot use: {error}"
        ) from error


def recorded_policy(described: Any, given: Policy | None, what: str) -> Policy:
    """Return the recorded policy; use the given one if it is the same."""
    try:
        return restored_policy(described, given)
    except ManyarmsError as error:
        raise SavedFileError(
            f"{what} needs the policy {described['label']}, which cannot be created here: {error} "
            f"Register it first, or pass `policy`."
        ) from error


def differences(given: Settings, recorded: Settings, *, ignore_seed: bool) -> list[str]:
    """Return a description of each setting that differs."""
    found = []
    for field in fields(Settings):
        new, old = getattr(given, field.name), getattr(recorded, field.name)
        if field.name in ("n_arms", "names") or (field.name == "seed" and ignore_seed):
            continue
        if new != old:
            if field.name == "policy":
                new, old = str(new), str(old)
            stored = shown(old, 80)
            found.append(f"{field.name} is {stored} in the store, and {shown(new, 80)} was given")
    return found
