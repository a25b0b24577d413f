// A reference to a callable, valid for one call: nothing is copied or allocated.
#pragma once
#include <cstddef>
#include <memory>
#include <utility>

namespace nearfield {

template <class Signature>
class FunctionRef;
template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  FunctionRef(std::nullptr_t) {}
  template <class Function>
  FunctionRef(const Function& function)
      : object_(std::addressof(function)), call_([](const void* object, Arguments... arguments) -> Result {
          return (*static_cast<const Function*>(object))(std::forward<Arguments>(arguments)...);
        }) {}
  explicit operator bool() const { return call_ != nullptr; }
  Result operator()(Arguments... arguments) const { return call_(object_, std::forward<Arguments>(arguments)...); }

 private:
  const void* object_ = nullptr;
  Result (*call_)(const void*, Arguments...) = nullptr;
};

}  // namespace nearfield
