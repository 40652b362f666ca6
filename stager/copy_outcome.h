// What a copy did.
#ifndef H2D_STAGER_COPY_OUTCOME_H_
#define H2D_STAGER_COPY_OUTCOME_H_

#include <cstdint>
#include <string_view>

namespace h2d {

struct CopyOutcome {
  enum class Kind : uint8_t {
    kIssued,      // one copy of the whole image was enqueued
    kTrimmed,     // one copy of the span that differs was enqueued
    kSkipped,     // the destination holds the values already, or there were none: no copy
    kWouldBlock,  // every slot is taken and the caller chose not to wait: nothing happened
  };

  Kind kind = Kind::kSkipped;
  uint64_t bytes_sent = 0;

  friend constexpr bool operator==(const CopyOutcome&, const CopyOutcome&) noexcept = default;
};

constexpr std::string_view ToString(CopyOutcome::Kind kind) noexcept {
  switch (kind) {
    case CopyOutcome::Kind::kIssued:
      return "issued";
    case CopyOutcome::Kind::kTrimmed:
      return "trimmed";
    case CopyOutcome::Kind::kSkipped:
      return "skipped";
    case CopyOutcome::Kind::kWouldBlock:
      return "would block";
  }
  return "unknown";
}

}  // namespace h2d

#endif  // H2D_STAGER_COPY_OUTCOME_H_
