// Finds the processes of a job that run Nearfield, without a message or call that the others would have to take part
// in.
//
//   every process, before all meet   binds an abstract socket, named by job, user and number
//   after they have met              looks for the names of all
//     if all are there               goes on
//     else                           withdraws: binds a second name, for processes that ask has_withdrawn()
//
// Names are bound before the processes meet, so afterwards each sees every name there will be. All get the same answer:
// names last until the process ends, and either all processes see all names (they share a network namespace) or none
// does. The kernel removes a name with its process.
//
// Another user who has bound such a name can only hide that a process is absent: a process that finds its name taken
// binds another one of a few, and those who look for it look for all of these.
#pragma once
#include <string>
#include <vector>

namespace nearfield::team {

class Presence {
 public:
  // `job`: the same in all processes of the job, and in no other job of this user; `number`: from 0 on. Binds nothing
  // yet.
  Presence(const std::string& job, int number);

  // False: the name is taken, or no socket can be had.
  bool announce() const { return claim(name_of(number_)); }
  void withdraw() const { claim(withdrawn(number_)); }
  std::vector<int> absentees(int size) const;  // numbers below `size` that are absent, in order
  bool has_withdrawn(int number) const { return exists(withdrawn(number)); }

 private:
  static bool claim(const std::string& name);  // the name lasts until the process ends
  static bool exists(const std::string& name);
  std::string name_of(int number) const { return prefix_ + std::to_string(number); }
  std::string withdrawn(int number) const { return name_of(number) + "-out"; }
  std::string prefix_;
  int number_;
};

}  // namespace nearfield::team
