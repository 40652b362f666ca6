// Errors are values: every fallible call of h2d answers `Expected<T>`.
//
// `Expected<T>` is `tl::expected<T, Error>`, one alias away from C++23's `std::expected`, so that
// the library works in builds with and without exceptions. The library never throws, and never
// calls `value()`, which could.
#ifndef H2D_DEVICE_ERROR_H_
#define H2D_DEVICE_ERROR_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace h2d {

enum class ErrorCode : uint8_t {
  kInvalidArgument,     // the call can never work as written: fix the caller
  kFailedPrecondition,  // the call is fine, the state is not: a capture, a closed stager, a fork
  kResourceExhausted,   // a limit is reached and nothing in flight will give way
  kUnavailable,         // it may work later: a deadline passed, an order is not known yet
  kDevice,              // the device reported an error; `Error::device_code` holds its number
};

// The code's name as it is written in messages, e.g. "invalid argument".
std::string_view ToString(ErrorCode code) noexcept;

// What went wrong. `message` is one whole sentence with the values in it, for a person to read;
// programs branch on `code`. `device_code` is the device's own number, 0 when it gave none.
struct [[nodiscard]] Error {
  ErrorCode code = ErrorCode::kDevice;
  int device_code = 0;
  std::string message;

  // "invalid argument: <message>", with the device's number when there is one.
  std::string ToString() const;
};

template <class T>
using Expected = tl::expected<T, Error>;

using Unexpected = tl::unexpected<Error>;

// `return MakeError(code, "...");` in functions that answer an `Expected`.
inline Unexpected MakeError(ErrorCode code, std::string message, int device_code = 0) {
  return Unexpected(Error{code, device_code, std::move(message)});
}

inline Unexpected InvalidArgument(std::string message) {
  return MakeError(ErrorCode::kInvalidArgument, std::move(message));
}
inline Unexpected FailedPrecondition(std::string message) {
  return MakeError(ErrorCode::kFailedPrecondition, std::move(message));
}
inline Unexpected ResourceExhausted(std::string message) {
  return MakeError(ErrorCode::kResourceExhausted, std::move(message));
}
inline Unexpected Unavailable(std::string message) {
  return MakeError(ErrorCode::kUnavailable, std::move(message));
}

// Moves the error out of a failed `Expected`, to be returned as an `Expected` of another type.
template <class T>
Unexpected ErrorOf(Expected<T>& failed) {
  return Unexpected(std::move(failed).error());
}

}  // namespace h2d

#endif  // H2D_DEVICE_ERROR_H_
