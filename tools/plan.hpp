// The plan of a node's memory (plan.cpp).
#pragma once

// Prints the plan for the arguments argv[1] and up. Returns the exit status.
int plan_memory(int argc, char** argv);
