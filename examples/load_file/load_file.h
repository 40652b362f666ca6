// Loads a file into device memory: whole, or a .safetensors file tensor by tensor.
#ifndef H2D_EXAMPLES_LOAD_FILE_LOAD_FILE_H_
#define H2D_EXAMPLES_LOAD_FILE_LOAD_FILE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "h2d/examples/load_file/target_device.h"
#include "h2d/stager/uploader.h"

namespace h2d::load_file {

// A part of the file and the place of its own that it is loaded to.
struct Part {
  std::string name;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  DevicePtr to{};
};

struct LoadPlan {
  std::vector<Part> parts;
  uint64_t bytes = 0;
};

// What there is to load from the open file `descriptor`, with device memory for it. Parts of 0
// bytes have no place. Errors: a damaged .safetensors header; no device memory.
Expected<LoadPlan> MakePlan(TargetDevice& target, const std::string& path, int descriptor);

// Loads all parts and waits for them. Answers the seconds it took, on the device's clock.
Expected<double> Load(TargetDevice& target, Uploader& uploader, const LoadPlan& plan,
                      int descriptor, const std::function<void(uint64_t bytes_done)>& progress);

// The same by the device's own copies from a mapping of the file.
Expected<double> LoadByDriver(TargetDevice& target, const LoadPlan& plan, int descriptor,
                              uint64_t file_bytes);

// Reads the parts back and compares them with the file. Answers what differs, if anything does.
Expected<std::optional<std::string>> FindDifference(TargetDevice& target, const LoadPlan& plan,
                                                    int descriptor);

}  // namespace h2d::load_file

#endif  // H2D_EXAMPLES_LOAD_FILE_LOAD_FILE_H_
