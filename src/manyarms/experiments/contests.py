"""The paper's experiment on a caption contest, for any contest, and without its thresholding."""

from __future__ import annotations

from manyarms.experiments.paper import fig3
from manyarms.experiments.setting import Setting
from manyarms.instances import Contest, from_means

__all__ = ["THRESHOLDS", "contest_setting"]

THRESHOLDS = (0.8, None)  # the paper's, and means as they are


def contest_setting(contest: Contest, *, threshold: float | None = 0.8) -> Setting:
    r"""Return what Figure 3 plays on contest 652, for this contest, without the curve.

    Parameters
    ----------
    contest
        From `read_contest`.
    threshold
        From which mean on, relative to the best, a caption counts as best; None leaves all means
        as they are.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from manyarms.instances import read_contest
    >>> text = "caption,votes,not_funny,somewhat_funny,funny\nA,9,3,4,2\nB,9,4,4,1\nC,9,9,0,0\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "7.csv"
    ...     _ = path.write_text(text)
    ...     contest = read_contest(path)
    >>> [contest_setting(contest, threshold=t).instance.label for t in THRESHOLDS]
    ['captions(7, n=3, m=2)', 'captions(7, n=3, m=1)']
    """
    means = contest.means(threshold=threshold)
    label = f"captions({contest.path.stem}, n={means.size}, m={(means == 1.0).sum()})"
    setting = fig3(from_means(means, label=label))
    return Setting(
        contest.path.stem, setting.alpha, setting.instance, setting.policies, setting.horizon
    )
