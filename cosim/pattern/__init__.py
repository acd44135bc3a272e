"""How collectives are carried: algorithms -> templates of messages, proved before they are timed."""
