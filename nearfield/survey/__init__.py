"""`nearfield survey`: what a machine is, what calls take on it by host and by algorithm, and how well they are chosen.

places.py     where the CPUs are, the placements that are measured, pairs of CPUs
steps.py      what is measured, in which order
running.py    measures it within a time, and goes on where it was stopped
archive.py    what leaves the machine: nothing that names it, or anybody
page.py       the page of one survey or several
"""
