#include "h2d/bench/calibrate/sources.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

namespace h2d::calibrate {

Expected<std::unique_ptr<Sources>> Sources::Make(Device& device, uint64_t bytes) {
  auto pinned = device.AllocatePinned(bytes);
  if (!pinned) return ErrorOf(pinned);
  auto sources = std::unique_ptr<Sources>(new Sources(std::move(*pinned), bytes));
  if (!sources->MakeFile()) return FailedPrecondition("No temporary file could be made.");
  return sources;
}

Sources::Sources(PinnedBuffer pinned, uint64_t bytes)
    : pageable_(bytes), pinned_(std::move(pinned)), mapped_(MAP_FAILED) {
  for (size_t i = 0; i < pageable_.size(); ++i) pageable_[i] = static_cast<std::byte>(i * 7);
  std::copy(pageable_.begin(), pageable_.end(), pinned_.bytes().begin());
}

Sources::~Sources() {
  if (mapped_ != MAP_FAILED) munmap(mapped_, pageable_.size());
  if (file_ != nullptr) std::fclose(file_);
}

bool Sources::MakeFile() {
  file_ = std::tmpfile();
  if (file_ == nullptr) return false;
  if (std::fwrite(pageable_.data(), 1, pageable_.size(), file_) != pageable_.size()) return false;
  if (std::fflush(file_) != 0) return false;
  mapped_ = mmap(nullptr, pageable_.size(), PROT_READ, MAP_PRIVATE, fileno(file_), 0);
  return mapped_ != MAP_FAILED;
}

}  // namespace h2d::calibrate
