"""Nearfield's collectives and their algorithms, as the tests force them (test_choosing.py holds them against the table)."""

ORDERS = ["linear", "rotated", "xored", "grouped", "near-first"]
ALGORITHMS = {
    "barrier": ["slots"],
    "bcast": ["line", "slots", "tree", "met", "pipeline", "direct", "direct-pull", "together"],
    "reduce": ["line", "slots", "tree", "pipeline", "partitioned", "direct", "direct-blocks", "together"],
    "allreduce": [
        "slots",
        "tree",
        "oneshot",
        "partitioned",
        "direct",
        "direct-blocks",
        "direct-pull",
        "together",
    ],
    "allgather": [
        "slots",
        "tree",
        "rounds",
        "pull-rotated",
        "pull-near-first",
        "push-rotated",
        "push-near-first",
        "tiled",
        "together",
    ],
    "alltoall": [
        "slots",
        "rounds",
        "together",
        *(f"{direction}-{order}" for direction in ("pull", "push") for order in ORDERS),
        "tiled",
        "morton",
        *(f"pull-{store}" for store in ("temporal", "streaming", "prefix", "distant", "fraction")),
    ],
    "gather": ["line", "slots", "tree", "pipeline", "direct", "together"],
    "scatter": ["line", "slots", "tree", "pipeline", "direct", "together"],
    "reduce_scatter_block": ["slots", "tree", "rounds", "direct"],
}
OPERATIONS = list(ALGORITHMS)
# Those that load or store peers' buffers.
DIRECT = {
    name
    for names in ALGORITHMS.values()
    for name in names
    if name in ("together", "tiled", "morton") or name.startswith(("direct", "pull-", "push-"))
}
