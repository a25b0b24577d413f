// Thrown where a call of the C API ends with an error.
#pragma once
#include <nearfield.h>

#include <stdexcept>
#include <string>

namespace nearfield::api {

struct Failed : std::runtime_error {
  Failed(nf_status why, const std::string& text) : std::runtime_error(text), status(why) {}
  nf_status status;
};

// "1, 3 and 4"
template <class Numbers>
std::string listed(const Numbers& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    text += (i == 0 ? "" : i + 1 == numbers.size() ? " and " : ", ") + std::to_string(numbers[i]);
  return text;
}

}  // namespace nearfield::api
