"""Every policy on a suite of problems, ranked among those that know the same."""
