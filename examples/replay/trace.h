// The requests that a serving trace records.
#ifndef H2D_EXAMPLES_REPLAY_TRACE_H_
#define H2D_EXAMPLES_REPLAY_TRACE_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "h2d/device/error.h"

namespace h2d::replay {

struct TraceRequest {
  std::chrono::nanoseconds arrival{0};  // since the trace's first request
  uint32_t context_tokens = 0;          // of the prompt; at least 1
  uint32_t generated_tokens = 0;

  friend bool operator==(const TraceRequest&, const TraceRequest&) = default;
};

// No request of a trace has more tokens of either kind: far above any model's context, and small
// enough that sums of tokens and blocks never overflow.
inline constexpr uint32_t kMaxTraceTokens = 1U << 24;

// Reads `TIMESTAMP,ContextTokens,GeneratedTokens`, a header line and then one request a line:
//
//   2023-11-16 18:17:03.9799600,4808,10
//
// A timestamp has up to 9 digits of fraction and may end with `Z` or `+00:00`. Lines end with LF or
// CRLF, the last one also with nothing. Arrivals never go back in time.
// Errors: `kInvalidArgument`, with `name:line:` and what is wrong there.
Expected<std::vector<TraceRequest>> ParseTrace(std::string_view text, std::string_view name);

// The same from a file.
// Errors: also a file that cannot be read, with the system's reason.
Expected<std::vector<TraceRequest>> ReadTrace(const std::string& path);

}  // namespace h2d::replay

#endif  // H2D_EXAMPLES_REPLAY_TRACE_H_
