"""What tests under real MPIs share: jobs that stay."""

from collections.abc import Iterator

import pytest

from tests.mpi.resident import Jobs


@pytest.fixture(scope="session")
def jobs() -> Iterator[Jobs]:
    """Jobs that stay, by host, ranks and environment; a job that does not end well is an error of the last test."""
    pool = Jobs()
    yield pool
    pool.end()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that take the same job belong together, for schedulers that look at groups (--dist loadgroup)."""
    for item in items:
        call = getattr(item, "callspec", None)
        if call and "jobs" in item.fixturenames and {"host", "ranks"} <= set(call.params):
            item.add_marker(pytest.mark.xdist_group(f"{call.params['host']} {call.params['ranks']}"))
