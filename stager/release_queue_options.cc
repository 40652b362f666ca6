#include "h2d/stager/release_queue_options.h"

#include <string>

namespace h2d {
namespace {

Expected<void> CheckMark(const char* mark_name, uint64_t mark, const char* limit_name,
                         uint64_t limit) {
  if (mark == 0)
    return InvalidArgument("The option " + std::string(mark_name) + ", 0, is too small.");
  if (mark <= limit) return {};
  return InvalidArgument("The option " + std::string(mark_name) + ", " + std::to_string(mark) +
                         ", is above " + limit_name + ", " + std::to_string(limit) + ".");
}

}  // namespace

Expected<void> Validate(const ReleaseQueueOptions& options) {
  if (auto ok = CheckMark("flush_items", options.flush_items, "max_items", options.max_items); !ok)
    return ok;
  if (auto ok = CheckMark("flush_bytes", options.flush_bytes, "max_bytes", options.max_bytes); !ok)
    return ok;
  if (options.wait_timeout < std::chrono::nanoseconds(0)) {
    return InvalidArgument("The option wait_timeout, " +
                           std::to_string(options.wait_timeout.count()) + " ns, is negative.");
  }
  return {};
}

}  // namespace h2d
