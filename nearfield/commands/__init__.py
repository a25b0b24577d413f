"""The subcommands: a module of its name each, imported when it is named. It takes what it needs for its work inside main()."""

# In the order of --help, which leaves out what tools/run.cpp alone calls.
SUBCOMMANDS = {
    "run": "run a launcher with Nearfield under its MPI programs",
    "exec": "become a program with Nearfield, as one rank of a job",
    "env": "print what `nearfield run` would set, for job scripts",
    "compare": "compare a command with and without Nearfield",
    "stats": "sum up the statistics that ranks of jobs have written",
    "check": "say whether programs would be served, and why not",
    "info": "show the machine, ways of reaching memory, hosts",
    "bench": "measure calls, plain and under Nearfield",
    "model": "estimate what every algorithm costs, and which is chosen",
    "explain": "explain which algorithm a call would take, and why",
    "plan": "plan memory: what Nearfield takes, and where it should lie",
    "tune": "measure the fastest algorithms, for NEARFIELD_CHOOSE=file",
    "report": "write the page of a run again, from its JSON",
    "demo": "show what five programs gain here, when, why and how safely",
    "place": "suggest a CPU for each rank of a program that has run",
    "survey": "survey a machine: distances and collectives",
    "afterwards": "",
}
