// Who of a job takes part, found out without any message or call that a process without Nearfield would spoil.
//
//   every process, before all meet   binds an abstract socket, named by job, user and number
//   after it                         looks for the names of all
//     all are there                  goes on
//     else                           withdraws, by a second name, for those who look in another way
//
// Whoever has met the others sees the name of every process that will ever have one, if names are bound before. All
// come to the same answer: names are kept until the process ends, and none sees all unless all see all (they share
// network namespace). The kernel takes a name away with its process.
//
// Another user who binds such a name hides an absent process at worst.
#pragma once
#include <string>
#include <vector>

namespace nearfield::team {

class Presence {
 public:
  // `job`: equal for all of the job and for nobody else of this user's; `number`: from 0 on. Does nothing yet.
  Presence(const std::string& job, int number);

  // False: the name could not be had.
  bool announce() const { return claim(name_of(number_)); }
  void withdraw() const { claim(withdrawn(number_)); }
  std::vector<int> absentees(int size) const;  // of the numbers below, in order
  bool has_withdrawn(int number) const { return exists(withdrawn(number)); }

 private:
  static bool claim(const std::string& name);  // until the process ends
  static bool exists(const std::string& name);
  std::string name_of(int number) const { return prefix_ + std::to_string(number); }
  std::string withdrawn(int number) const { return name_of(number) + "-out"; }
  std::string prefix_;
  int number_;
};

}  // namespace nearfield::team
