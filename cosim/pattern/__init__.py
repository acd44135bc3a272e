"""How collectives are carried: algorithms -> message templates with dependencies, proved before they are timed."""
