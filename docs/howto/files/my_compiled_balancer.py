"""The balancer of my_balancer.py, compiled."""

from my_balancer import TwoAndTheLast


class TwoInC(TwoAndTheLast):
    """The same in C"""

    kernel = "two_and_the_last.c"  # and the function two_and_the_last in it

    def parameters(self):
        return [self.keep]
