"""Nearfield: makes MPI fast inside a node."""

__version__ = "0.1.0"
