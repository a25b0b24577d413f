"""Pretended nodes on one machine, jobs over them, and what crosses between them.

They belong to the package because `nearfield bench --nodes` and `--app ... --nodes` measure over them; tests use them too
(tests/nodes, with Slurm's daemons, which are the tests' alone).
"""
