// One call of the library, again and again, for a program that counts instructions.
//
//   valgrind --tool=callgrind --toggle-collect='Measured*' instructions CASE CALLS
//
// Collecting is on only in the functions called `Measured...`, so that what prepares a case counts
// nothing. `bench/instructions/run` runs all cases and compares them with their bounds.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "h2d/device/host/host_device.h"
#include "h2d/stager/pinned_stager.h"

namespace h2d {
namespace {

constexpr size_t kValues = 64;  // 256 B
constexpr size_t kFields = 16;
constexpr size_t kFieldValues = 256;  // 1 KiB each
constexpr size_t kFieldBytes = kFieldValues * sizeof(int32_t);

// Ends the program: a call that fails would count for less than it costs.
template <class T>
T Must(Expected<T> result) {
  if (!result) {
    std::fprintf(stderr, "%s\n", result.error().ToString().c_str());
    std::exit(1);
  }
  return *std::move(result);
}
void Require(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "%s\n", what);
  std::exit(1);
}

struct Bench {
  std::shared_ptr<HostDevice> host = HostDevice::Create();
  Stream stream = host->NewStream();
  std::vector<int32_t> values = std::vector<int32_t>(kValues, 7);
  std::vector<int32_t> there = std::vector<int32_t>(kValues);
  std::unique_ptr<PinnedStager> stager = Must(PinnedStager::Create(host, {.slot_bytes = 256}));

  Destination destination() { return Destination::Of(there.data(), there.size()); }
};

// The layout's slab is aligned as device memory is.
struct Step {
  explicit Step(Bench& bench)
      : stager(Must(PinnedStager::Create(bench.host, {.slot_bytes = kFields * kFieldBytes}))) {
    StepLayout::Builder builder;
    for (size_t i = 0; i < kFields; ++i) {
      fields[i] = builder.Add<int32_t>("field " + std::to_string(i), kFieldValues);
    }
    const StepLayout layout = Must(std::move(builder).Build());
    slab.emplace(Must(bench.host->AllocatePinned(layout.slab_bytes())));
    writer.emplace(Must(stager->NewStepWriter(layout, DevicePtr(slab->bytes().data()))));
  }
  CopyOutcome Send(Bench& bench) {
    for (const Field<int32_t>& field : fields) {
      Require(writer->Set(field, values).has_value(), "A field was refused.");
    }
    return Must(writer->Submit(bench.stream));
  }

  std::unique_ptr<PinnedStager> stager;
  std::array<Field<int32_t>, kFields> fields;
  std::vector<int32_t> values = std::vector<int32_t>(kFieldValues, 7);
  std::optional<PinnedBuffer> slab;
  std::optional<StepWriter> writer;
};

}  // namespace

// Names without parameters, for the tool's pattern.
extern "C" {

[[gnu::noinline]] void MeasuredMemcpy(Bench* bench) {
  std::memcpy(bench->there.data(), bench->values.data(), kValues * sizeof(int32_t));
  asm volatile("" : : : "memory");
}

[[gnu::noinline]] void MeasuredMemcmp(Bench* bench) {
  asm volatile("" : : : "memory");
  Require(std::memcmp(bench->there.data(), bench->values.data(), kValues * sizeof(int32_t)) == 0,
          "The values differ.");
}

[[gnu::noinline]] void MeasuredCopy(Bench* bench) {
  Require(bench->stager->Copy(bench->destination(), bench->values, bench->stream).has_value(),
          "A copy failed.");
}

[[gnu::noinline]] void MeasuredHit(Bench* bench, H2DMirror* mirror) {
  const auto outcome = bench->stager->Copy(*mirror, bench->values, bench->stream);
  Require(outcome && outcome->kind == CopyOutcome::Kind::kSkipped, "A copy was no hit.");
}

[[gnu::noinline]] void MeasuredFieldMemcmps(Step* step) {
  for (size_t i = 0; i < kFields; ++i) {
    asm volatile("" : : : "memory");
    Require(std::memcmp(step->slab->bytes().data() + i * kFieldBytes, step->values.data(),
                        kFieldBytes) == 0,
            "The values differ.");
  }
}

// What a step that changed cannot do without: the image takes its values, the slot the image, and
// the destination what the slot holds.
[[gnu::noinline]] void MeasuredPackedMemcpys(Step* step, std::byte* image) {
  for (size_t i = 0; i < kFields; ++i) {
    std::memcpy(image + i * kFieldBytes, step->values.data(), kFieldBytes);
    asm volatile("" : : : "memory");
  }
  for (std::byte* to : {image + kFields * kFieldBytes, step->slab->bytes().data()}) {
    std::memcpy(to, image, kFields * kFieldBytes);
    asm volatile("" : : : "memory");
  }
}

[[gnu::noinline]] void MeasuredChangedStep(Bench* bench, Step* step) {
  Require(step->Send(*bench).kind == CopyOutcome::Kind::kIssued, "A step was not sent in full.");
}

[[gnu::noinline]] void MeasuredUnchangedStep(Bench* bench, Step* step) {
  Require(step->Send(*bench).kind == CopyOutcome::Kind::kSkipped, "A step was not unchanged.");
}

}  // extern "C"

namespace {

int Run(std::string_view name, uint64_t calls) {
  Bench bench;
  const auto repeat = [calls](const auto& call) {
    for (uint64_t n = 0; n < calls; ++n) call();
  };
  if (name == "memcpy") {
    repeat([&] { MeasuredMemcpy(&bench); });
  } else if (name == "copy") {
    repeat([&] { MeasuredCopy(&bench); });
  } else if (name == "memcmp") {
    bench.there = bench.values;
    repeat([&] { MeasuredMemcmp(&bench); });
  } else if (name == "hit") {
    H2DMirror mirror = Must(bench.stager->NewMirror(bench.destination()));
    static_cast<void>(Must(bench.stager->Copy(mirror, bench.values, bench.stream)));
    repeat([&] { MeasuredHit(&bench, &mirror); });
  } else if (name == "fields") {
    Step step(bench);
    static_cast<void>(step.Send(bench));
    repeat([&] { MeasuredFieldMemcmps(&step); });
  } else if (name == "step") {
    Step step(bench);
    static_cast<void>(step.Send(bench));
    repeat([&] { MeasuredUnchangedStep(&bench, &step); });
  } else if (name == "packed") {
    Step step(bench);
    std::vector<std::byte> image(2 * kFields * kFieldBytes);
    repeat([&] { MeasuredPackedMemcpys(&step, image.data()); });
  } else if (name == "changed") {
    Step step(bench);
    static_cast<void>(step.Send(bench));
    repeat([&] {
      for (int32_t& value : step.values) ++value;
      MeasuredChangedStep(&bench, &step);
    });
  } else {
    std::fprintf(stderr, "There is no case of that name.\n");
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace h2d

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr,
                 "usage: instructions memcpy|copy|memcmp|hit|fields|step|packed|changed CALLS\n");
    return 2;
  }
  return h2d::Run(argv[1], std::strtoull(argv[2], nullptr, 10));
}
