// nearfield: the command. `nearfield run` and `exec` avoid to start Python, since that would take 30 ms of a job's time
// (run.cpp). Everything else is done by nearfield/cli.py; `last` and `afterwards` are for its own use.
#include <cstring>
#include <vector>

#include "tools/afterwards.hpp"
#include "tools/installation.hpp"
#include "tools/run.hpp"

int main(int count, char** words) {
  using namespace nearfield::tools;
  for (const char* const asked : {"run", "exec", "last"})
    if (count > 1 && !std::strcmp(words[1], asked)) run(asked, words + 2);
  if (count > 4 && !std::strcmp(words[1], "afterwards")) say_afterwards(words[2], words[3], words + 4);
  become_python(std::vector<const char*>(words + 1, words + count + 1), "there is no Python 3 in PATH");
}
