// What a mirror may and must know of its destination: when a copy has to be skipped or trimmed, and
// when it may not be.
#ifndef H2D_TESTS_SUPPORT_MIRROR_KNOWLEDGE_H_
#define H2D_TESTS_SUPPORT_MIRROR_KNOWLEDGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "h2d/tests/support/region_model.h"

namespace h2d::testing {

class MirrorKnowledge {
 public:
  explicit MirrorKnowledge(size_t bytes) : known_(bytes, kUnknown) {}

  // The content is unknown, for certain.
  void Forget();
  // A call brought `image` to the start of the destination.
  void Learn(std::span<const uint8_t> image);
  // Another path of the library wrote these bytes: they are unknown now, the others may be.
  void ForgetRange(size_t first, size_t count);
  // A refused call: it may have made the mirror forget.
  void MayHaveForgotten() { may_be_less_ = true; }
  // A failed call, or several at once: anything may be known.
  void Unsure() { may_be_less_ = may_be_more_ = true; }

  // How many bytes may travel for a call that brings `image`: none for a hit.
  struct Bounds {
    uint64_t least = 0;
    uint64_t most = 0;
  };
  Bounds BytesDue(std::span<const uint8_t> image, size_t element_bytes,
                  uint64_t min_trim_bytes) const;
  // What `Matches` has to answer; nothing when either answer is right.
  std::optional<bool> Matches(std::span<const uint8_t> image) const;

 private:
  static constexpr int16_t kUnknown = -1;

  struct Span {
    size_t first = 0;
    size_t end = 0;  // equal to `first`: nothing differs
    bool all_known = true;
  };
  Span DifferenceFrom(std::span<const uint8_t> image) const;

  std::vector<int16_t> known_;
  bool may_be_less_ = false;
  bool may_be_more_ = false;
};

}  // namespace h2d::testing

#endif  // H2D_TESTS_SUPPORT_MIRROR_KNOWLEDGE_H_
