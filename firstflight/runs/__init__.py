"""One run: the kinds of study, measuring, folders of runs, their report."""
