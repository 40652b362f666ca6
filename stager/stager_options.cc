#include "h2d/stager/stager_options.h"

#include <string>

#include "h2d/device/checked_size.h"
#include "h2d/device/pinned_buffer.h"

namespace h2d {
namespace {

Unexpected OutOfRange(const char* field, uint64_t value, const std::string& allowed) {
  return InvalidArgument("StagerOptions::" + std::string(field) + " is " + std::to_string(value) +
                         "; it must be " + allowed + ".");
}

std::string Between(uint64_t least, uint64_t most) {
  return "between " + std::to_string(least) + " and " + std::to_string(most);
}

}  // namespace

Expected<void> Validate(const StagerOptions& options) {
  const uint32_t most_slots = StagerOptions::kMaxSlots;
  const uint64_t most_bytes = StagerOptions::kMaxSlotBytes;
  if (options.slot_bytes == 0 || options.slot_bytes > most_bytes) {
    return OutOfRange("slot_bytes", options.slot_bytes, Between(1, most_bytes));
  }
  if (options.max_slots == 0 || options.max_slots > most_slots) {
    return OutOfRange("max_slots", options.max_slots, Between(1, most_slots));
  }
  if (options.initial_slots == 0 || options.initial_slots > options.max_slots) {
    return OutOfRange("initial_slots", options.initial_slots,
                      Between(1, options.max_slots) + ", the value of max_slots");
  }
  if (options.max_pinned_bytes == 0) return OutOfRange("max_pinned_bytes", 0, "at least 1");
  // Within the bounds above neither can overflow.
  const uint64_t slot = *RoundedUp(options.slot_bytes, PinnedBuffer::kAlignment);
  const uint64_t initial = slot * options.initial_slots;
  if (initial > options.max_pinned_bytes) {
    return OutOfRange("max_pinned_bytes", options.max_pinned_bytes,
                      "at least initial_slots times slot_bytes, rounded up to blocks of " +
                          std::to_string(PinnedBuffer::kAlignment) +
                          " bytes: " + std::to_string(initial));
  }
  if (options.wait_timeout.count() < 0) {
    return InvalidArgument("StagerOptions::wait_timeout is " +
                           std::to_string(options.wait_timeout.count()) +
                           " ns; it must not be negative.");
  }
  return {};
}

}  // namespace h2d
