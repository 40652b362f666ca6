#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "h2d/bench/device_costs/compare.h"
#include "h2d/bench/device_costs/original_ring.h"
#include "h2d/bench/device_costs/rows.h"
#include "h2d/stager/pinned_stager.h"

namespace h2d::bench {
namespace {

constexpr uint64_t kFields = 16;
constexpr uint64_t kFieldBytes = 1024;
constexpr uint64_t kStepBytes = kFields * kFieldBytes;

using Values = std::array<std::vector<int32_t>, kFields>;

Values AllOf(int32_t value) {
  Values values;
  values.fill(std::vector<int32_t>(kFieldBytes / 4, value));
  return values;
}

// A slab, its writer, and the fields of the step.
struct Packed {
  Packed(const Setting& s, const std::shared_ptr<PinnedStager>& stager) {
    StepLayout::Builder builder;
    for (uint64_t i = 0; i < kFields; ++i) {
      fields[i] = builder.Add<int32_t>("field " + std::to_string(i), kFieldBytes / 4);
    }
    const StepLayout layout = Must(std::move(builder).Build());
    Check(cudaMalloc(&slab, layout.slab_bytes()), "Allocating a slab");
    writer.emplace(Must(stager->NewStepWriter(layout, DevicePtr(slab))));
    stream = s.stream;
  }
  ~Packed() {
    writer.reset();
    Check(cudaFree(slab), "Freeing a slab");
  }
  Packed(const Packed&) = delete;
  Packed& operator=(const Packed&) = delete;

  void Send(const Values& values) {
    for (uint64_t i = 0; i < kFields; ++i) Must(writer->Set(fields[i], values[i]));
    Must(writer->Submit(*stream));
  }

  std::array<Field<int32_t>, kFields> fields;
  void* slab = nullptr;
  std::optional<StepWriter> writer;
  std::optional<Stream> stream;
};

void RawPacked(Setting& s, uint64_t n, const Values& values) {
  for (uint64_t i = 0; i < kFields; ++i) {
    std::memcpy(s.Slot(n, kStepBytes) + i * kFieldBytes, values[i].data(), kFieldBytes);
  }
  Check(cudaMemcpyAsync(s.There(n), s.Slot(n, kStepBytes), kStepBytes, cudaMemcpyHostToDevice,
                        s.native),
        "A copy");
  Check(cudaEventRecord(s.native_events[n % s.slots], s.native), "A record");
}

void RawSeparate(Setting& s, uint64_t n, const Values& values) {
  for (uint64_t i = 0; i < kFields; ++i) {
    std::byte* const slot = s.Slot(n, kStepBytes) + i * kFieldBytes;
    std::memcpy(slot, values[i].data(), kFieldBytes);
    Check(cudaMemcpyAsync(s.There(i), slot, kFieldBytes, cudaMemcpyHostToDevice, s.native),
          "A copy");
  }
  Check(cudaEventRecord(s.native_events[n % s.slots], s.native), "A record");
}

void RawBatch(Setting& s, uint64_t n, const Values& values) {
  std::array<CopyEntry, kFields> entries;
  for (uint64_t i = 0; i < kFields; ++i) {
    std::byte* const slot = s.Slot(n, kStepBytes) + i * kFieldBytes;
    std::memcpy(slot, values[i].data(), kFieldBytes);
    entries[i] = {DevicePtr(s.There(i)), {slot, kFieldBytes}};
  }
  Must(s.device->CopyBatchAsync(entries, *s.stream));
  Must(s.device->Record(s.events[n % s.slots], *s.stream));
}

// In loops of 100 the device keeps up with all but the separate copies; in loops of 1,000 those are
// as slow as it.
void CompareStep(Setting& s, uint64_t calls) {
  const std::shared_ptr<PinnedStager> stager = Must(PinnedStager::Create(
      s.device, {.slot_bytes = kStepBytes, .initial_slots = 64, .max_slots = 64}));
  const std::array<Values, 2> versions = {AllOf(1), AllOf(2)};
  Values one = AllOf(3);
  Packed all(s, stager);
  Packed forgetful(s, stager);
  Packed few(s, stager);
  Packed same(s, stager);
  same.Send(versions[0]);
  OriginalRing original(kFieldBytes);
  const std::string separate = "raw, separate: 16 memcpys, 16 copies, one record";
  Compare("a step of 16 tensors of 1 KiB",
          {{"raw, packed: 16 memcpys, one copy, one record",
            [&](uint64_t n) { RawPacked(s, n, versions[n % 2]); }},
           {separate, [&](uint64_t n) { RawSeparate(s, n, versions[n % 2]); }},
           {"raw, batch: 16 memcpys, one batch copy, one record",
            [&](uint64_t n) { RawBatch(s, n, versions[n % 2]); }},
           {"StepWriter, all changed", [&](uint64_t n) { all.Send(versions[n % 2]); }},
           {"StepWriter, all changed, again", [&](uint64_t n) { all.Send(versions[n % 2]); },
            [&] { return separate; }},
           {"StepWriter, all sent without being compared",
            [&](uint64_t n) {
              forgetful.writer->Invalidate();
              forgetful.Send(versions[n % 2]);
            }},
           {"StepWriter, one value of one tensor changed",
            [&](uint64_t n) {
              one[7][100] = static_cast<int32_t>(n);
              few.Send(one);
            }},
           {"StepWriter, unchanged", [&](uint64_t) { same.Send(versions[0]); }},
           {"original: 16 times lock, wait for the next of 8 slots",
            [&](uint64_t n) {
              for (uint64_t i = 0; i < kFields; ++i) {
                original.Copy(s.There(i), versions[n % 2][i].data(), kFieldBytes, s.native);
              }
            }}},
          calls);
}

void CompareSeparate(Setting& s) {
  const std::shared_ptr<PinnedStager> stager = Must(PinnedStager::Create(
      s.device, {.slot_bytes = kFieldBytes, .initial_slots = 1024, .max_slots = 1024}));
  // A ring of its own: one that serves sizes in turn cuts its memory anew for each.
  const std::shared_ptr<PinnedStager> together = Must(PinnedStager::Create(
      s.device, {.slot_bytes = kStepBytes, .initial_slots = 64, .max_slots = 64}));
  const std::array<Values, 2> versions = {AllOf(1), AllOf(2)};
  const auto batch = [&](const Values& values, std::vector<H2DMirror>* mirrors) {
    std::vector<BatchCopy> copies;
    copies.reserve(kFields);
    for (uint64_t i = 0; i < kFields; ++i) {
      const Destination there{DevicePtr(s.There(i)), kFieldBytes / 4, 4};
      copies.push_back(mirrors == nullptr ? BatchCopy::To(there, values[i])
                                          : BatchCopy::To((*mirrors)[i], values[i]));
    }
    Must(together->CopyBatch(copies, *s.stream));
  };
  Compare("16 tensors of 1 KiB with destinations of their own",
          {{"raw, separate: 16 memcpys, 16 copies, one record",
            [&](uint64_t n) { RawSeparate(s, n, versions[n % 2]); }},
           {"raw, batch: 16 memcpys, one batch copy, one record",
            [&](uint64_t n) { RawBatch(s, n, versions[n % 2]); }},
           {"stager: CopyBatch", [&](uint64_t n) { batch(versions[n % 2], nullptr); }},
           {"stager: 16 Copy",
            [&](uint64_t n) {
              for (uint64_t i = 0; i < kFields; ++i) {
                Must(stager->Copy({DevicePtr(s.There(i)), kFieldBytes / 4, 4}, versions[n % 2][i],
                                  *s.stream));
              }
            }}},
          50);
  std::vector<H2DMirror> mirrors;
  for (uint64_t i = 0; i < kFields; ++i) {
    mirrors.push_back(Must(together->NewMirror({DevicePtr(s.There(i)), kFieldBytes / 4, 4})));
  }
  Compare(
      "the same through mirrors",
      {{"stager: CopyBatch, all changed", [&](uint64_t n) { batch(versions[n % 2], &mirrors); }},
       {"stager: CopyBatch, unchanged", [&](uint64_t) { batch(versions[0], &mirrors); }},
       {"stager: 16 Copy, unchanged",
        [&](uint64_t) {
          for (uint64_t i = 0; i < kFields; ++i) {
            Must(together->Copy(mirrors[i], versions[0][i], *s.stream));
          }
        }}},
      50);
}

// Two small changes with `gap` bytes between them: in one copy that covers the gap, or in a batch.
// Where the two cost the same is what `StepWriterOptions::cover_gap_bytes` should be.
void CompareGap(Setting& s, uint64_t gap) {
  const std::shared_ptr<PinnedStager> stager = Must(PinnedStager::Create(
      s.device, {.slot_bytes = gap + 4096, .initial_slots = 64, .max_slots = 256}));
  StepLayout::Builder builder;
  const auto first = builder.Add<int32_t>("first", 16);
  const auto between = builder.Add<int32_t>("between", gap / 4);
  const auto last = builder.Add<int32_t>("last", 16);
  const StepLayout layout = Must(std::move(builder).Build());
  const auto sender = [&](uint64_t cover_gap_bytes) {
    void* slab = nullptr;
    Check(cudaMalloc(&slab, layout.slab_bytes()), "Allocating a slab");
    auto writer = std::make_shared<StepWriter>(
        Must(stager->NewStepWriter(layout, DevicePtr(slab), {.cover_gap_bytes = cover_gap_bytes})));
    Must(writer->Set(first, std::vector<int32_t>(16, 1)));
    Must(writer->Set(between, std::vector<int32_t>(gap / 4, 1)));
    Must(writer->Set(last, std::vector<int32_t>(16, 1)));
    return [&s, first, last, writer](uint64_t n) {
      const std::array<int32_t, 1> value = {static_cast<int32_t>(n)};
      Must(writer->SetAt(first, 0, value));
      Must(writer->SetAt(last, 0, value));
      Must(writer->Submit(*s.stream));
    };
  };
  Compare("two values with " + std::to_string(gap) + " B between them",
          {{"one copy that covers the gap", sender(~uint64_t{0})}, {"a batch of two", sender(0)}},
          100);
}

}  // namespace

void CompareSteps(Setting& setting) {
  CompareStep(setting, 100);
  CompareStep(setting, 1000);
  CompareSeparate(setting);
  for (const uint64_t gap : {1024, 4096, 8192, 16384, 32768, 65536}) CompareGap(setting, gap);
}

}  // namespace h2d::bench
