// nearfield: the command. `nearfield run` and `exec` start no Python where they can do without, since that would take
// 30 ms of a job's time (run.cpp); everything else is nearfield/cli.py.
#include <cstring>
#include <vector>

#include "tools/installation.hpp"
#include "tools/run.hpp"

int main(int count, char** words) {
  using namespace nearfield::tools;
  for (const char* const asked : {"run", "exec", "last"})
    if (count > 1 && !std::strcmp(words[1], asked)) run(asked, words + 2);
  become_python(std::vector<const char*>(words + 1, words + count + 1), "there is no Python 3 in PATH");
}
