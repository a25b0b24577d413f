// A value or an Error that says what was tried, what failed and what the user can do. Nothing is thrown.
#pragma once
#include <cerrno>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

namespace nearfield {

struct Error {
  std::string text;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : holds_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : holds_(std::in_place_index<1>, std::move(error)) {}
  explicit operator bool() const { return holds_.index() == 0; }
  T& operator*() { return std::get<0>(holds_); }
  const T& operator*() const { return std::get<0>(holds_); }
  T* operator->() { return &std::get<0>(holds_); }
  const Error& error() const { return std::get<1>(holds_); }

 private:
  std::variant<T, Error> holds_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}
  explicit operator bool() const { return !error_; }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

// "TRIED: text of errno".
inline Error system_error(std::string_view tried, int number = errno) {
  return Error{std::string(tried) + ": " + std::generic_category().message(number)};
}

}  // namespace nearfield
