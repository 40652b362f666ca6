#ifndef H2D_STAGER_INTERNAL_WAIT_FOR_SLOT_H_
#define H2D_STAGER_INTERNAL_WAIT_FOR_SLOT_H_

#include <cstdint>

namespace h2d::internal {

// What a call does when every slot is taken and the ring may not grow.
enum class WaitForSlot : uint8_t { kYes, kNo };

}  // namespace h2d::internal

#endif  // H2D_STAGER_INTERNAL_WAIT_FOR_SLOT_H_
