"""Which cases of a test run per change, and which in `make test-all` only."""

from collections.abc import Iterable

import pytest
from _pytest.mark import ParameterSet

FULL = pytest.mark.full


def per_change(parameters: Iterable, first: int = 1) -> list:
    """Parameters for pytest, of which only the first run per change."""
    marked = []
    for index, parameter in enumerate(parameters):
        values = parameter if isinstance(parameter, tuple) else (parameter,)
        one = parameter if isinstance(parameter, ParameterSet) else pytest.param(*values)
        marks = [*one.marks, FULL] if index >= first else one.marks
        marked.append(pytest.param(*one.values, marks=marks, id=one.id))
    return marked
