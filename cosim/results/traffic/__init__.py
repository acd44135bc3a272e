"""Traffic: who sends how much to whom, with which period, in which pattern; of runs and of captures."""
