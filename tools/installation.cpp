#include "tools/installation.hpp"

#include <glob.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "engine/base/early_settings.hpp"

namespace nearfield::tools {
namespace {

// Makes Python import nothing from the current directory, as the option -P does from Python 3.11 on.
constexpr const char* bootstrap =
    "import sys\n"
    "nearfields_command = sys.argv.pop(1)\n"
    "sys.path[: sys.path[0] == ''] = filter(None, [sys.argv.pop(1)])\n"
    "from nearfield.cli import main\n"
    "main()";

// The Python package, relative to the directory of this program, and the libraries, relative to the package.
struct Kind {
  const char *package, *libraries;
  bool checkout = false;  // the libraries are those of the build that this program belongs to
};
constexpr Kind kinds[] = {
    {"../lib*/python3*/*-packages/nearfield", "/lib"},     // by pip
    {"../nearfield", "/lib"},                              // by pip --target
    {"../lib*/nearfield/python/nearfield", "/../../.."},   // by CMake
    {"../lib/*/nearfield/python/nearfield", "/../../.."},  // where each kind of machine has a directory (Debian)
    {"../../../nearfield", nullptr, true},                 // build/release of a checkout
    {"../../nearfield", nullptr, true},                    // build of a checkout
};

std::string parent(const std::string& path) { return path.substr(0, path.rfind('/')); }

// Returns the path of this program, without symbolic links.
std::string own_path() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  if (length > 0) return {path, std::size_t(length)};
  const char* const started = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  return started && realpath(started, path) ? path : "";
}

// The first file that the pattern fits below `directory`; "" where there is none.
std::string first_file(const std::string& directory, const std::string& pattern) {
  std::string whole;
  for (const char c : directory) {
    if (std::strchr("*?[\\", c)) whole += '\\';
    whole += c;
  }
  glob_t found{};
  char path[PATH_MAX];
  std::string first;
  if (glob((whole + "/" + pattern).c_str(), 0, nullptr, &found) == 0 && realpath(found.gl_pathv[0], path)) first = path;
  globfree(&found);
  return first;
}

struct Installation {
  std::string package;  // "": nothing was found
  const Kind* kind = nullptr;
};

Installation find_installation() {
  const std::string here = parent(own_path());
  for (const Kind& kind : kinds)
    if (const std::string cli = first_file(here, std::string(kind.package) + "/cli.py"); !cli.empty())
      return {parent(cli), &kind};
  return {};
}

// Returns the interpreter beside the installation, else the first one in PATH; "" if there is none.
std::string interpreter(const Installation& own, const std::string& version) {
  const std::string here = parent(own_path());
  std::vector<std::string> places = {here + "/" + version, here + "/python3"};
  if (own.kind && own.kind->checkout) places.push_back(parent(own.package) + "/.venv/bin/python");
  const char* const set = std::getenv("PATH");
  const std::string path = set ? set : "/usr/bin:/bin";
  for (const std::string& name : {version, std::string("python3")})
    for (std::size_t at = 0, end; at <= path.size(); at = end + 1) {
      end = std::min(path.find(':', at), path.size());
      places.push_back(path.substr(at, end - at) + "/" + name);
    }
  const auto found = std::ranges::find_if(places, [](const std::string& at) { return !access(at.c_str(), X_OK); });
  return found == places.end() ? "" : *found;
}

}  // namespace

std::string library_directory() {
  if (const char* const set = std::getenv(early::libraries.variable); set && *set) return set;
  const auto [package, kind] = find_installation();
  if (!kind) return {};
  return parent(
      first_file(kind->checkout ? parent(own_path()) + "/../lib" : package + kind->libraries, "libnearfield.so"));
}

void become_python(const std::vector<const char*>& words, const std::string& otherwise) {
  const Installation own = find_installation();
  const std::string self = own_path(), root = parent(own.package);
  const bool installed = root.ends_with("-packages");  // its Python finds it
  std::string version = "python3";
  if (installed) version = parent(root).substr(parent(parent(root)).size() + 1);
  const std::string python = interpreter(own, version);
  std::vector<const char*> all = {python.c_str(), "-c", bootstrap, self.c_str(), installed ? "" : root.c_str()};
  all.insert(all.end(), words.begin(), words.end());
  execv(python.c_str(), const_cast<char**>(all.data()));
  std::fprintf(stderr, "nearfield: %s\n", otherwise.c_str());
  std::exit(2);
}

}  // namespace nearfield::tools
