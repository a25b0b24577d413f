"""`nearfield survey`: what `nearfield info` and `nearfield bench` say of a machine, and how well algorithms are chosen there.

measuring.py    measures it within a time, and goes on where it was stopped
archive.py      what leaves the machine: nothing that names it, or anybody
page.py         the page of one survey or several
"""
