#include "h2d/examples/load_file/load_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>
#include <utility>

#include "h2d/examples/load_file/safetensors.h"
#include "h2d/examples/load_file/shown_name.h"

namespace h2d::load_file {
namespace {

// Where tensors may begin, as device allocations do.
constexpr uint64_t kAlignment = 256;
constexpr uint64_t kVerifyBytes = uint64_t{16} << 20;

Expected<std::vector<Part>> PartsOf(const std::string& path, int descriptor) {
  std::vector<Part> parts;
  if (path.ends_with(".safetensors")) {
    auto tensors = ReadSafetensors(descriptor);
    if (!tensors) return ErrorOf(tensors);
    for (TensorInfo& tensor : *tensors)
      parts.push_back({std::move(tensor.name), tensor.offset, tensor.bytes, DevicePtr()});
    return parts;
  }
  struct stat status = {};
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode))
    return InvalidArgument(path + " is no regular file.");
  parts.push_back({path, 0, static_cast<uint64_t>(status.st_size), DevicePtr()});
  return parts;
}

double Seconds(std::chrono::nanoseconds time) { return static_cast<double>(time.count()) * 1e-9; }

bool ReadExactly(int descriptor, uint64_t offset, std::span<std::byte> into) {
  while (!into.empty()) {
    const ssize_t got = pread(descriptor, into.data(), into.size(), static_cast<off_t>(offset));
    if (got <= 0) return false;
    offset += static_cast<uint64_t>(got);
    into = into.subspan(static_cast<size_t>(got));
  }
  return true;
}

}  // namespace

Expected<LoadPlan> MakePlan(TargetDevice& target, const std::string& path, int descriptor) {
  auto parts = PartsOf(path, descriptor);
  if (!parts) return ErrorOf(parts);
  LoadPlan plan;
  plan.parts = std::move(*parts);
  uint64_t room = 0;
  for (const Part& part : plan.parts) {
    plan.bytes += part.bytes;
    room += (part.bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  if (room == 0) return plan;
  auto memory = target.Allocate(room);
  if (!memory) return ErrorOf(memory);
  DevicePtr at = *memory;
  for (Part& part : plan.parts) {
    if (part.bytes == 0) continue;
    part.to = at;
    at = at + (part.bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  return plan;
}

Expected<double> Load(TargetDevice& target, Uploader& uploader, const LoadPlan& plan,
                      int descriptor, const std::function<void(uint64_t bytes_done)>& progress) {
  const auto start = target.device()->Now();
  uint64_t done = 0;
  UploadControl control;
  control.progress = [&](const UploadProgress& part) { progress(done + part.bytes_enqueued); };
  for (const Part& part : plan.parts) {
    auto ticket = uploader.Upload({.ptr = part.to, .count = part.bytes, .element_bytes = 1},
                                  UploadSource::File(descriptor, part.offset, part.bytes),
                                  target.stream(), control);
    if (!ticket) return ErrorOf(ticket);
    done += part.bytes;
  }
  if (auto arrived = target.Synchronize(); !arrived) return ErrorOf(arrived);
  return Seconds(target.device()->Now() - start);
}

Expected<double> LoadByDriver(TargetDevice& target, const LoadPlan& plan, int descriptor,
                              uint64_t file_bytes) {
  void* const mapped = mmap(nullptr, file_bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (mapped == MAP_FAILED) return FailedPrecondition("The file could not be mapped.");
  const std::span file(static_cast<const std::byte*>(mapped), file_bytes);
  const auto start = target.device()->Now();
  Expected<void> result;
  for (const Part& part : plan.parts) {
    if (!result) break;
    result =
        target.device()->CopyAsync(part.to, file.subspan(part.offset, part.bytes), target.stream());
  }
  // Before the mapping ends, whatever happened: a copy may be reading it.
  Expected<void> arrived = target.Synchronize();
  const double seconds = Seconds(target.device()->Now() - start);
  munmap(mapped, file_bytes);
  if (!result) return ErrorOf(result);
  if (!arrived) return ErrorOf(arrived);
  return seconds;
}

Expected<std::optional<std::string>> FindDifference(TargetDevice& target, const LoadPlan& plan,
                                                    int descriptor) {
  std::vector<std::byte> expected(std::min(kVerifyBytes, plan.bytes));
  std::vector<std::byte> found(expected.size());
  for (const Part& part : plan.parts) {
    for (uint64_t at = 0; at < part.bytes; at += kVerifyBytes) {
      const auto bytes = static_cast<size_t>(std::min(kVerifyBytes, part.bytes - at));
      const std::span want = std::span(expected).first(bytes);
      const std::span have = std::span(found).first(bytes);
      if (!ReadExactly(descriptor, part.offset + at, want))
        return FailedPrecondition("The file could not be read again.");
      if (auto read = target.ReadBack(part.to + at, have); !read) return ErrorOf(read);
      const auto differs = std::mismatch(want.begin(), want.end(), have.begin()).first;
      if (differs == want.end()) continue;
      const uint64_t byte = at + static_cast<uint64_t>(differs - want.begin());
      return std::optional(ShownName(part.name) + " differs at byte " + std::to_string(byte));
    }
  }
  return std::optional<std::string>();
}

}  // namespace h2d::load_file
