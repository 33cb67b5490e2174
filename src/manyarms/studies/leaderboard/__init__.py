"""Every policy on a suite of problems, ranked among those that are told the same."""
