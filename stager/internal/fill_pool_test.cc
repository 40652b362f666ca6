// Pieces are read once each, by whoever comes first, whatever the number of threads.
#include "h2d/stager/internal/fill_pool.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace h2d::internal {
namespace {

using Bytes = std::vector<std::byte>;
using std::chrono::microseconds;

constexpr uint64_t kPiece = 1000;

Bytes Pattern(uint64_t bytes, uint32_t seed = 1) {
  Bytes result(bytes);
  for (uint64_t i = 0; i < bytes; ++i)
    result[i] = static_cast<std::byte>((i * 2654435761U + i / 251 + seed) >> 3);
  return result;
}

// Reads all of `source` through `pool`, in jobs of `job_bytes`.
Bytes ReadThrough(FillPool& pool, const Bytes& source, uint64_t job_bytes, bool wake) {
  const UploadSource memory = UploadSource::Memory(source);
  const SourceReader reader(memory);
  Bytes into(source.size());
  std::deque<FillJob> jobs;
  for (uint64_t at = 0; at < source.size(); at += job_bytes) {
    const uint64_t bytes = std::min(job_bytes, source.size() - at);
    jobs.emplace_back(reader, at, std::span(into).subspan(at, bytes), kPiece);
    pool.Submit(jobs.back(), wake);
  }
  for (FillJob& job : jobs) {
    pool.Finish(job);
    EXPECT_TRUE(job.result);
  }
  return into;
}

TEST(FillPool, ReadsAllOfASourceWithAnyNumberOfThreads) {
  const Bytes source = Pattern(100'123);
  for (const uint32_t threads : {0U, 1U, 4U}) {
    for (const microseconds look_for : {microseconds(0), microseconds(50)}) {
      FillPool pool(threads, look_for);
      for (const bool wake : {false, true, false}) {
        for (const uint64_t job_bytes : {uint64_t{700}, uint64_t{10'500}, uint64_t{200'000}}) {
          EXPECT_TRUE(ReadThrough(pool, source, job_bytes, wake) == source)
              << threads << " threads, jobs of " << job_bytes;
        }
      }
    }
  }
}

// Of a source that many threads read, whoever finishes a job keeps to it.
TEST(FillPool, ReadsAllOfASourceThatManyThreadsRead) {
  constexpr uint64_t kJob = uint64_t{1} << 20;
  void* const zeros = mmap(nullptr, SourceReader::kManyBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(zeros, MAP_FAILED);
  const Bytes pattern = Pattern(4 * kJob);
  std::memcpy(zeros, pattern.data(), pattern.size());
  const UploadSource memory = UploadSource::Memory(
      std::span(static_cast<const std::byte*>(zeros), SourceReader::kManyBytes));
  SourceReader reader(memory);
  reader.PrepareFor(SourceReader::kManyThreads - 1);
  EXPECT_FALSE(reader.by_many_threads());
  reader.PrepareFor(SourceReader::kManyThreads);
  EXPECT_TRUE(reader.by_many_threads());
  for (const uint32_t threads : {0U, 1U, 4U}) {
    FillPool pool(threads, microseconds(0));
    Bytes into(pattern.size());
    std::deque<FillJob> jobs;
    for (uint64_t at = 0; at < into.size(); at += kJob) {
      jobs.emplace_back(reader, at, std::span(into).subspan(at, kJob), kJob);
      pool.Submit(jobs.back(), /*wake=*/true);
    }
    for (FillJob& job : jobs) pool.Finish(job);
    EXPECT_TRUE(into == pattern) << threads << " threads";
  }
  munmap(zeros, SourceReader::kManyBytes);
}

// Threads that sleep in between, and callers that outnumber them.
TEST(FillPool, ServesSeveralCallersAtOnce) {
  FillPool pool(2, microseconds(0));
  std::vector<int> good(4);
  std::vector<std::thread> callers;
  for (size_t i = 0; i < good.size(); ++i) {
    callers.emplace_back([&, i] {
      for (int round = 0; round < 50; ++round) {
        const Bytes source = Pattern(20'000, static_cast<uint32_t>(i));
        good[i] += ReadThrough(pool, source, 3000, round % 2 == 0) == source ? 1 : 0;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(good, std::vector<int>(4, 50));
}

// Of a source that takes its time: what is there when the job is done is all that ever comes.
TEST(FillPool, AJobIsDoneWhenThePiecesThatOthersReadAreToo) {
  constexpr uint64_t kSlowPiece = uint64_t{128} << 10;
  const int random = open("/dev/urandom", O_RDONLY);
  ASSERT_GE(random, 0);
  const UploadSource source = UploadSource::File(random, 0, 32 * kSlowPiece);
  const SourceReader reader(source);
  for (int round = 0; round < 20; ++round) {
    Bytes into(32 * kSlowPiece);
    Bytes when_done;
    uint32_t pieces_done = 0;
    {
      FillPool pool(1, microseconds(1000));
      FillJob job(reader, 0, into, kSlowPiece);
      pool.Submit(job, true);
      pool.Finish(job);
      // First: to look at all of the bytes takes longer than to read the last piece.
      pieces_done = job.done;
      when_done = into;
      // The job outlives whatever reads it, also where `Finish` did not wait for that.
      while (job.done < job.pieces) std::this_thread::yield();
    }
    ASSERT_EQ(pieces_done, 32U) << "round " << round;
    ASSERT_TRUE(when_done == into) << "round " << round;
  }
  close(random);
}

TEST(FillPool, AFailureIsThatOfTheForemostPiece) {
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  const Bytes content = Pattern(2500);
  ASSERT_EQ(std::fwrite(content.data(), 1, content.size(), file), content.size());
  ASSERT_EQ(std::fflush(file), 0);
  const UploadSource source = UploadSource::File(fileno(file), 0, 10'000);
  const SourceReader reader(source);
  for (const uint32_t threads : {0U, 3U}) {
    FillPool pool(threads, microseconds(20));
    Bytes into(10'000);
    FillJob job(reader, 0, into, kPiece);
    pool.Submit(job, true);
    pool.Finish(job);
    ASSERT_FALSE(job.result);
    EXPECT_NE(job.result.error().message.find("ended at offset 2500"), std::string::npos)
        << job.result.error().message;
  }
  std::fclose(file);
}

TEST(FillPool, ACancelledJobIsDoneAndReadNoFurther) {
  FillPool pool(0, microseconds(0));
  const Bytes source = Pattern(5000);
  const UploadSource memory = UploadSource::Memory(source);
  const SourceReader reader(memory);
  Bytes into(5000);
  FillJob first(reader, 0, std::span(into).first(2000), kPiece);
  FillJob second(reader, 2000, std::span(into).subspan(2000), kPiece);
  pool.Submit(first, false);
  pool.Submit(second, false);
  pool.Cancel(second);
  pool.Cancel(second);
  pool.Finish(second);
  pool.Finish(first);
  Bytes expected(5000);
  std::copy(source.begin(), source.begin() + 2000, expected.begin());
  EXPECT_TRUE(into == expected);
}

}  // namespace
}  // namespace h2d::internal
