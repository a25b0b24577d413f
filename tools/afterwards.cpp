#include "tools/afterwards.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tools/installation.hpp"

namespace nearfield::tools {
namespace {

struct Reason {
  std::string text;
  int processes;
};

struct Words {
  bool served = false;  // also true if there is no file, since the launcher could not be started
  std::vector<Reason> reasons;
};

Words read_words(const char* path) {
  Words words;
  FILE* const file = std::fopen(path, "r");
  words.served = !file;
  char line[1100];
  while (file && std::fgets(line, sizeof line, file)) {
    line[std::strcspn(line, "\n")] = 0;
    words.served |= !std::strcmp(line, "served");
    constexpr const char* of_host = "host ";
    if (std::strncmp(line, of_host, std::strlen(of_host)) != 0) continue;
    const std::string text = line + std::strlen(of_host);
    const auto known = std::ranges::find(words.reasons, text, &Reason::text);
    if (known == words.reasons.end()) words.reasons.push_back({text, 1});
    else ++known->processes;
  }
  if (file) std::fclose(file);
  std::ranges::stable_sort(words.reasons, std::greater(), &Reason::processes);
  return words;
}

}  // namespace

void say_afterwards(const std::string& file, const std::string& status, char** command) {
  const Words words = read_words(file.c_str());
  unlink(file.c_str());
  if (words.served) _exit(0);
  if (words.reasons.empty()) {
    std::vector<const char*> asked = {"absence", status.c_str()};
    for (char** word = command; *word; ++word) asked.push_back(*word);
    asked.push_back(nullptr);
    become_python(asked, "nothing was served");
  }
  std::string text = "nearfield run: ";
  if (std::atoi(status.c_str()) > 0) text += "the job ended with exit status " + status + ", and ";
  for (const Reason& reason : words.reasons) {
    if (&reason != words.reasons.data()) text += "  ";
    text += "Nearfield served nothing in " + std::to_string(reason.processes) +
            (reason.processes > 1 ? " processes: " : " process: ") + reason.text + "\n";
  }
  std::fputs(text.c_str(), stderr);
  _exit(0);
}

}  // namespace nearfield::tools
