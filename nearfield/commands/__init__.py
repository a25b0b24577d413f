"""The subcommands: a module of its name each, imported when it is named. It takes what it needs for its work inside main()."""

# In the order of --help, which leaves out what tools/afterwards.cpp alone calls.
SUBCOMMANDS = {
    "run": "start a launcher and load Nearfield into its MPI programs",
    "exec": "start a program with Nearfield, as one rank of a job",
    "env": "print the variables that `nearfield run` sets, for job scripts",
    "compare": "compare a command with and without Nearfield",
    "stats": "add up the statistics that the ranks of jobs have written",
    "check": "say whether Nearfield would serve a program, and if not, why",
    "info": "show the machine, ways of reaching memory, and MPIs found",
    "bench": "measure MPI calls with and without Nearfield",
    "model": "estimate the time of each algorithm, and show the choice",
    "explain": "explain which algorithm a call would use, and why",
    "plan": "calculate Nearfield's memory, and suggest where to place it",
    "tune": "measure which algorithms are fastest, for NEARFIELD_CHOOSE=file",
    "report": "write the page of a run again, from its JSON file",
    "demo": "run five example programs and show what they gain",
    "place": "suggest a CPU for each rank of a program that has run",
    "survey": "measure a machine: distances, messages, collectives",
    "absence": "",
}
