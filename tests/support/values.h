// Random values for copies: edits of what a destination was last sent.
#ifndef H2D_TESTS_SUPPORT_VALUES_H_
#define H2D_TESTS_SUPPORT_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "h2d/stager/image.h"
#include "h2d/tests/support/plan.h"
#include "h2d/tests/support/region_model.h"

namespace h2d::testing {

// Values and padding of one call, as bytes.
struct CallValues {
  uint32_t element_bytes = 1;
  Bytes values = {};
  Bytes pad = {};  // one element, or empty: no padding

  uint64_t count() const noexcept { return values.size() / element_bytes; }
  bool nothing() const noexcept { return values.empty() && pad.empty(); }
  // The bytes that a full copy writes into a destination of `capacity` elements.
  Bytes Image(uint64_t capacity) const;
  // For the library. Points into this object.
  internal::HostImage View() const noexcept;
};

// What comes after `last` on a destination of `capacity` elements, by the edit of `op`.
CallValues NextValues(const PlanOp& op, const Bytes& last, uint32_t element_bytes,
                      uint64_t capacity);

}  // namespace h2d::testing

#endif  // H2D_TESTS_SUPPORT_VALUES_H_
