// The plan of a node's memory (plan.cpp).
#pragma once

// Prints it for the words behind argv[0]. Returns the exit status.
int plan_memory(int argc, char** argv);
