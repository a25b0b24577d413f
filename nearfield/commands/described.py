"""What options that several subcommands have mean."""

RANKS_PER_NODE = "By default as many as the machine has CPUs."
MACHINE = "here, a preset (epyc-2x96, knl-64) or a file."
