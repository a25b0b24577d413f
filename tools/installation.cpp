#include "tools/installation.hpp"

#include <glob.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "engine/base/early_settings.hpp"

namespace nearfield::tools {
namespace {

// Nothing is imported from the present directory (as by -P, which Python has from 3.11 on).
constexpr const char* bootstrap =
    "import sys\n"
    "nearfields_command = sys.argv.pop(1)\n"
    "sys.path[: sys.path[0] == ''] = filter(None, [sys.argv.pop(1)])\n"
    "from nearfield.cli import main\n"
    "main()";

std::string parent(const std::string& path) { return path.substr(0, path.rfind('/')); }

// The first path that one of the patterns fits, which are relative to the directory of this program; "" if none does.
std::string part(std::initializer_list<const char*> patterns) {
  const std::string here = parent(own_path());
  std::string first;
  for (const char* const pattern : patterns) {
    glob_t found{};
    char path[PATH_MAX];
    if (glob((here + "/" + pattern).c_str(), 0, nullptr, &found) == 0 && realpath(found.gl_pathv[0], path))
      first = path;
    globfree(&found);
    if (!first.empty()) break;
  }
  return first;
}

// The nearfield/cli.py of the installation; "" where there is none.
std::string python_part() {
  return part({"../lib*/python3*/*-packages/nearfield/cli.py", "../../../nearfield/cli.py",
               "../lib*/nearfield/python/nearfield/cli.py", "../lib/*/nearfield/python/nearfield/cli.py"});
}

// The interpreter that goes with the installation, else the first one in PATH; "" where there is none.
std::string interpreter(const std::string& version) {
  const std::string here = parent(own_path());
  for (const std::string& at : {here + "/" + version, here + "/python3", here + "/../../../.venv/bin/python"})
    if (access(at.c_str(), X_OK) == 0) return at;
  const char* const set = std::getenv("PATH");
  const std::string path = set ? set : "/usr/bin:/bin";
  for (const std::string& name : {version, std::string("python3")})
    for (std::size_t at = 0, end; at <= path.size(); at = end + 1) {
      end = std::min(path.find(':', at), path.size());
      const std::string file = path.substr(at, end - at) + "/" + name;
      if (access(file.c_str(), X_OK) == 0) return file;
    }
  return {};
}

}  // namespace

std::string own_path() {
  char self[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self);
  return {self, std::size_t(length > 0 ? length : 0)};
}

std::string library_directory() {
  if (const char* const set = std::getenv(early::libraries.variable); set && *set) return set;
  const std::string found = part({"../lib*/libnearfield.so", "../lib/*/libnearfield.so",
                                  "../lib*/python3*/*-packages/nearfield/lib/libnearfield.so"});
  return parent(found);
}

void become_python(const std::vector<const char*>& words, const std::string& otherwise) {
  const std::string self = own_path(), package = parent(python_part()), root = parent(package);
  const bool installed = root.ends_with("-packages");  // its Python finds it
  std::string version = "python3";
  if (installed) version = parent(root).substr(parent(parent(root)).size() + 1);
  const std::string python = interpreter(version);
  std::vector<const char*> all = {python.c_str(), "-c", bootstrap, self.c_str(), installed ? "" : root.c_str()};
  all.insert(all.end(), words.begin(), words.end());
  execv(python.c_str(), const_cast<char**>(all.data()));
  std::fprintf(stderr, "nearfield: %s\n", otherwise.c_str());
  std::exit(2);
}

}  // namespace nearfield::tools
