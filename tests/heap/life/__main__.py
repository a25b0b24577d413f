"""One seed, or many until one differs."""

import argparse
import sys

from tests.heap.life import STEPS, difference, search

parser = argparse.ArgumentParser()
parser.add_argument("--host")
parser.add_argument("--ranks", type=int, default=0)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--steps", type=int, default=STEPS)
parser.add_argument("--seconds", type=float, default=0)
given = parser.parse_args()
ranks = given.ranks or (2 if given.host else 1)
if given.seconds:
    search(given.host, ranks, given.seconds, given.seed)
else:
    sys.exit(difference(given.host, ranks, given.seed, given.steps) or 0)
