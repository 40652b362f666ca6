#include "h2d/examples/replay/step_slabs.h"

#include <utility>

namespace h2d::replay {
namespace {

constexpr size_t kRowTensorKinds = kTensorKinds - kTokenTensorKinds;

std::string NameOf(uint32_t slab) {
  return "slab " + std::string(1, static_cast<char>('A' + slab % 26));
}

}  // namespace

Expected<StepSlabs> StepSlabs::Allocate(Machine& machine, const StepShape& shape, uint32_t count) {
  Expected<StepFields> fields = StepFields::For(shape);
  if (!fields) return ErrorOf(fields);
  std::vector<DevicePtr> slabs;
  for (uint32_t slab = 0; slab < count; ++slab) {
    Expected<DevicePtr> ptr = machine.AllocateDevice(fields->layout.slab_bytes(), NameOf(slab));
    if (!ptr) return ErrorOf(ptr);
    slabs.push_back(*ptr);
  }
  return StepSlabs(*std::move(fields), shape, std::move(slabs));
}

StepSlabs::StepSlabs(StepFields fields, const StepShape& shape, std::vector<DevicePtr> slabs)
    : fields_(std::move(fields)),
      slabs_(std::move(slabs)),
      graphs_(shape.token_sizes.size()),
      per_slab_(kRowTensorKinds + kTokenTensorKinds * graphs_),
      tensors_(per_slab_ * slabs_.size()) {
  for (uint32_t slab = 0; slab < slabs_.size(); ++slab) {
    for (size_t graph = 0; graph < graphs_; ++graph) {
      std::vector<Destination>& reads = read_by_.emplace_back();
      for (const TensorKind kind : kAllTensors) {
        reads.push_back({slabs_[slab] + fields_.OffsetOf(kind, graph), shape.CountOf(kind, graph),
                         ElementBytesOf(kind)});
        tensors_[IndexOf(slab, kind, graph)] = reads.back();
      }
    }
  }
}

size_t StepSlabs::IndexOf(uint32_t slab, TensorKind kind, size_t graph) const noexcept {
  const auto tensor = static_cast<size_t>(kind);
  const size_t within = IsPerToken(kind) ? kRowTensorKinds + graph * kTokenTensorKinds + tensor
                                         : tensor - kTokenTensorKinds;
  return slab * per_slab_ + within;
}

std::span<const Destination> StepSlabs::ReadBy(uint32_t slab, size_t graph) const noexcept {
  return read_by_[slab * graphs_ + graph];
}

std::string StepSlabs::Legend() const {
  std::string text = "Each slab holds:\n";
  for (const StepLayout::FieldInfo& field : fields_.layout.fields()) {
    text += "  + " + std::to_string(field.offset) + ": " + field.name + ", " +
            std::to_string(field.bytes()) + " B\n";
  }
  return text;
}

}  // namespace h2d::replay
