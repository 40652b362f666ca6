// What a destination may hold: the oracle that copies everything.
#ifndef H2D_TESTS_SUPPORT_REGION_MODEL_H_
#define H2D_TESTS_SUPPORT_REGION_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace h2d::testing {

using Bytes = std::vector<uint8_t>;

// What one call writes, were it a full copy.
struct WriteEffect {
  uint64_t offset = 0;
  Bytes bytes = {};
  bool maybe = false;  // the call failed: it may have written or not
};

// The images that a destination may hold once all calls on it have returned. Calls that did not
// overlap took effect in the order in which they were made; of calls that overlapped in time any
// order is allowed, because the caller cannot tell in which order the library took them.
class RegionModel {
 public:
  // More calls than this between two moments of rest are not enumerated: see `crowded`.
  static constexpr size_t kMaxCalls = 8;

  explicit RegionModel(Bytes initial);

  // A call begins; the answer names it for `End`.
  size_t Begin();
  // It returned, and wrote `effect` or nothing.
  void End(size_t call, std::optional<WriteEffect> effect);
  // A write that overlapped no other.
  void Write(WriteEffect effect);

  bool at_rest() const noexcept { return open_ == 0; }
  // No further call may begin before all have returned.
  bool crowded() const noexcept { return calls_.size() >= kMaxCalls; }

  // REQUIRES: at rest.
  const std::set<Bytes>& Images();

 private:
  struct Call {
    uint64_t begin = 0;
    uint64_t end = 0;
    std::optional<WriteEffect> effect = {};
  };

  void Settle();
  void Enumerate(const Bytes& image, uint32_t taken, std::set<std::pair<uint32_t, Bytes>>& seen,
                 std::set<Bytes>& out) const;

  std::set<Bytes> images_;
  std::vector<Call> calls_;
  size_t open_ = 0;
  uint64_t clock_ = 0;
};

// "00 01 .. | ff": bytes in hexadecimal, for messages.
std::string HexBytes(const Bytes& bytes);

}  // namespace h2d::testing

#endif  // H2D_TESTS_SUPPORT_REGION_MODEL_H_
