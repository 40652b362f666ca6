// Operating-system threads upload at once through one uploader (I8). Nothing here can be replayed:
// the checks are the contents, fairness in counts, and, in its build, thread sanitizer.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "h2d/device/fake/fake_device.h"
#include "h2d/device/host/host_device.h"
#include "h2d/stager/uploader.h"

namespace h2d {
namespace {

using Bytes = std::vector<std::byte>;

constexpr int kUploads = 4;
constexpr int kRounds = 5;
constexpr uint64_t kBytes = 100'003;

Bytes Pattern(uint64_t bytes, int seed) {
  Bytes result(bytes);
  for (uint64_t i = 0; i < bytes; ++i)
    result[i] = static_cast<std::byte>((i * 2654435761U + static_cast<uint64_t>(seed)) >> 5);
  return result;
}

UploaderOptions ManySmallChunks() {
  UploaderOptions options;
  options.threads = 3;
  options.chunk_bytes = 4096;
  options.min_chunk_bytes = 4096;
  options.max_chunks = 32;
  options.max_pinned_bytes = 32 * 4096 + 65'536;
  options.piece_bytes = 1000;
  options.wake_bytes = 8192;
  options.ring_bytes = 1024;
  return options;
}

// One thread's uploads: memory, a file, pinned memory, small; each checked by `read`.
void UploadInTurn(Uploader& uploader, Device& device, int thread, const Stream& stream,
                  const Destination& to, const std::function<Bytes(uint64_t bytes)>& read,
                  std::atomic<int>& good) {
  std::FILE* const file = std::tmpfile();
  for (int round = 0; round < kRounds; ++round) {
    const Bytes source = Pattern(round == 3 ? 700 : kBytes, thread * 100 + round);
    std::rewind(file);
    std::fwrite(source.data(), 1, source.size(), file);
    std::fflush(file);
    UploadSource what = UploadSource::Memory(source);
    if (round == 1) what = UploadSource::File(fileno(file), 0, source.size());
    if (round == 2) {
      auto pinned = device.AllocatePinned(source.size());
      if (!pinned) break;
      std::memcpy(pinned->bytes().data(), source.data(), source.size());
      const auto memory = pinned->bytes();
      what = UploadSource::Memory(memory).KeptAliveBy(HeldSource(std::move(*pinned)));
    }
    const auto ticket = uploader.Upload(to, std::move(what), stream);
    if (ticket && read(source.size()) == source && uploader.SourceReusable(*ticket)) ++good;
  }
  std::fclose(file);
}

TEST(UploaderThreads, UploadsAtOnceArriveWholeOnHostMemory) {
  const auto device = HostDevice::Create();
  const auto uploader = Uploader::Create(device, ManySmallChunks()).value();
  std::vector<Bytes> memory(kUploads, Bytes(kBytes));
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kUploads; ++i) {
    threads.emplace_back([&, i] {
      Bytes& mine = memory[static_cast<size_t>(i)];
      UploadInTurn(
          *uploader, *device, i, device->NewStream(), Destination::Of(mine.data(), mine.size()),
          [&](uint64_t bytes) {
            return Bytes(mine.begin(), mine.begin() + static_cast<std::ptrdiff_t>(bytes));
          },
          good);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, kUploads * kRounds);
}

TEST(UploaderThreads, UploadsAtOnceArriveWholeOnTheSimulatedDevice) {
  FakeOptions options;
  options.choices = std::make_shared<HashChoices>(7);
  options.detect_hazards = false;  // to it all operating-system threads are one
  options.keep_trace = false;
  options.os_threads = true;
  const auto device = FakeDevice::Create(options);
  const auto uploader = Uploader::Create(device, ManySmallChunks()).value();
  // Two of them share a stream.
  std::vector<Stream> streams;
  std::vector<Destination> targets;
  for (int i = 0; i < kUploads; ++i) {
    streams.push_back(i == 1 ? streams[0] : device->NewStream());
    targets.push_back(
        {.ptr = device->AllocateDevice(kBytes).value(), .count = kBytes, .element_bytes = 1});
  }
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kUploads; ++i) {
    threads.emplace_back([&, i] {
      const auto at = static_cast<size_t>(i);
      UploadInTurn(
          *uploader, *device, i, streams[at], targets[at],
          [&, at](uint64_t bytes) {
            Bytes result(bytes);
            const auto read = device->ReadBack(targets[at].ptr, result, streams[at]);
            return read ? result : Bytes();
          },
          good);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, kUploads * kRounds);
}

}  // namespace
}  // namespace h2d
