"""cosim: training jobs as message-level traffic, replayed closed-loop over a network simulator."""
