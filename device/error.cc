#include "h2d/device/error.h"

namespace h2d {

std::string_view ToString(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid argument";
    case ErrorCode::kFailedPrecondition:
      return "failed precondition";
    case ErrorCode::kResourceExhausted:
      return "resource exhausted";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kDevice:
      return "device error";
  }
  return "unknown error";
}

std::string Error::ToString() const {
  std::string text(h2d::ToString(code));
  if (device_code != 0) text += " (device code " + std::to_string(device_code) + ")";
  return text + ": " + message;
}

}  // namespace h2d
