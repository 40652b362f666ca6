// Loading files, whole and damaged, on the simulated device and in host memory.
#include "h2d/examples/load_file/load_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "h2d/examples/load_file/flags.h"
#include "h2d/examples/load_file/progress_bar.h"
#include "h2d/examples/load_file/safetensors.h"

namespace h2d::load_file {
namespace {

// A file with content, gone with the test.
class TempFile {
 public:
  explicit TempFile(const std::string& content, const std::string& suffix = ".bin") {
    const char* const folder = std::getenv("TEST_TMPDIR");
    path_ = std::string(folder == nullptr ? "/tmp" : folder) + "/load_file_XXXXXX" + suffix;
    descriptor_ = mkstemps(path_.data(), static_cast<int>(suffix.size()));
    EXPECT_EQ(write(descriptor_, content.data(), content.size()),
              static_cast<ssize_t>(content.size()));
  }
  ~TempFile() {
    close(descriptor_);
    unlink(path_.c_str());
  }
  const std::string& path() const { return path_; }
  int descriptor() const { return descriptor_; }

 private:
  std::string path_;
  int descriptor_;
};

std::string Pattern(size_t bytes) {
  std::string text(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>((i * 2654435761U) >> 11);
  return text;
}

std::string Safetensors(const std::string& header, const std::string& data) {
  std::string file(8, '\0');
  for (size_t i = 0; i < 8; ++i) file[i] = static_cast<char>(header.size() >> (8 * i));
  return file + header + data;
}

std::string Tensor(const std::string& name, const std::string& dtype, const std::string& shape,
                   const std::string& offsets) {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" +
         offsets + "}";
}

// Loads and answers what went wrong, or differs; empty when nothing does.
std::string LoadAndVerify(const std::string& device, const TempFile& file, bool by_driver = false) {
  auto target = NewTargetDevice(device);
  if (!target) return target.error().ToString();
  auto plan = MakePlan(**target, file.path(), file.descriptor());
  if (!plan) return plan.error().ToString();
  UploaderOptions options;
  options.chunk_bytes = options.min_chunk_bytes = 1 << 16;
  options.ring_bytes = 1 << 12;
  const auto uploader = Uploader::Create((*target)->device(), options);
  if (!uploader) return uploader.error().ToString();
  uint64_t shown = 0;
  const auto seconds =
      by_driver ? LoadByDriver(**target, *plan, file.descriptor(),
                               static_cast<uint64_t>(lseek(file.descriptor(), 0, SEEK_END)))
                : Load(**target, **uploader, *plan, file.descriptor(),
                       [&](uint64_t bytes_done) { shown = bytes_done; });
  if (!seconds) return seconds.error().ToString();
  if (!by_driver && shown != plan->bytes) return "the progress ended at " + std::to_string(shown);
  const auto difference = FindDifference(**target, *plan, file.descriptor());
  if (!difference) return difference.error().ToString();
  if ((*target)->hazards() != 0) return "hazards";
  return difference->value_or("");
}

TEST(LoadFile, EveryByteArrives) {
  for (const char* const device : {"fake", "host"}) {
    for (const size_t bytes : {0, 1, 4096, 1'000'003}) {
      const TempFile file(Pattern(bytes));
      EXPECT_EQ(LoadAndVerify(device, file), "") << device << " " << bytes;
    }
  }
}

TEST(LoadFile, TheDriversWayArrivesToo) {
  const TempFile file(Pattern(300'000));
  for (const char* const device : {"fake", "host"})
    EXPECT_EQ(LoadAndVerify(device, file, true), "");
}

TEST(LoadFile, VerifyingFindsADifference) {
  const TempFile file(Pattern(100'000));
  const auto target = NewTargetDevice("host").value();
  const auto plan = MakePlan(*target, file.path(), file.descriptor()).value();
  const auto uploader = Uploader::Create(target->device()).value();
  ASSERT_TRUE(Load(*target, *uploader, plan, file.descriptor(), [](uint64_t) {}));
  const char other = '!';
  ASSERT_EQ(pwrite(file.descriptor(), &other, 1, 77'777), 1);
  const auto difference = FindDifference(*target, plan, file.descriptor()).value();
  ASSERT_TRUE(difference);
  EXPECT_NE(difference->find("differs at byte 77777"), std::string::npos) << *difference;
}

TEST(LoadFile, TensorsGoToPlacesOfTheirOwn) {
  const std::string header =
      R"({"__metadata__":{"format":"pt"},)" + Tensor("b", "F16", "[3,5]", "[12,42]") + "," +
      Tensor("a", "I32", "[3]", "[0,12]") + "," + Tensor("empty", "F32", "[0,7]", "[42,42]") + "," +
      Tensor("scalar", "U8", "[]", "[42,43]") + "}";
  const TempFile file(Safetensors(header, Pattern(43)), ".safetensors");
  const auto tensors = ReadSafetensors(file.descriptor());
  ASSERT_TRUE(tensors) << tensors.error().ToString();
  ASSERT_EQ(tensors->size(), 4U);
  EXPECT_EQ((*tensors)[0].name, "a");
  EXPECT_EQ((*tensors)[1].offset, 8 + header.size() + 12);
  for (const char* const device : {"fake", "host"}) EXPECT_EQ(LoadAndVerify(device, file), "");
}

TEST(Safetensors, ADamagedHeaderIsAClearError) {
  const auto expect = [](const std::string& content, const std::string& text) {
    const TempFile file(content, ".safetensors");
    const auto tensors = ReadSafetensors(file.descriptor());
    ASSERT_FALSE(tensors) << text;
    EXPECT_EQ(tensors.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(tensors.error().message.find(text), std::string::npos) << tensors.error().message;
  };
  const auto one = [](const std::string& tensor) {
    return Safetensors("{" + tensor + "}", "12345678");
  };
  expect("1234567", "7 bytes");
  expect(std::string(8, '\xff'), "its length is");
  expect(Safetensors("{}", "").substr(0, 9), "its length is 2");
  expect(Safetensors("{\"a\":", ""), "no JSON object");
  expect(Safetensors("[]", ""), "no JSON object");
  expect(Safetensors("", ""), "begins at its first byte");
  expect(Safetensors(" {}", ""), "begins at its first byte");
  expect(Safetensors("{}x", ""), "no JSON object");
  expect(Safetensors(std::string("{}\0\0", 4), ""), "a byte of 0 at offset 2");
  expect(one("\"a\":3"), "'a' is no object");
  expect(one("\"new\\nline\\u001b[31m\":3"), "'new\\nline\\u001b[31m' is no object");
  expect(one("\"a\":3," + Tensor("a", "U8", "[8]", "[0,8]")), "the key 'a' comes twice");
  expect(one(Tensor("a", "U8", "[8]", "[0,8]") + "," + Tensor("a", "U8", "[8]", "[0,8]")),
         "the key 'a' comes twice");
  expect(one(R"("a":{"dtype":"F32","dtype":"U8","shape":[8],"data_offsets":[0,8]})"),
         "the key 'dtype' comes twice");
  expect(Safetensors(R"({"__metadata__":3})", ""), "'__metadata__' is no object");
  expect(Safetensors(R"({"__metadata__":{"x":[1]}})", ""), "value of 'x' in '__metadata__'");
  expect(Safetensors(R"({"__metadata__":{"x":"1","x":"2"}})", ""), "the key 'x' comes twice");
  expect(one(Tensor("a", "F6_E2M3", "[3]", "[0,8]")), "18 bits");
  expect(one(Tensor("a", "F31", "[2]", "[0,8]")), "unknown dtype 'F31'");
  expect(one(Tensor("a", "F32", "[-2]", "[0,8]")), "no whole number");
  expect(one(Tensor("a", "F32", "2", "[0,8]")), "no shape");
  expect(one(Tensor("a", "F32", "[4294967296,4294967296]", "[0,8]")), "overflows");
  expect(one(Tensor("a", "F32", "[2]", "[0]")), "no pair of data_offsets");
  expect(one(Tensor("a", "F32", "[2]", "[8,0]")), "outside");
  expect(one(Tensor("a", "F32", "[3]", "[0,12]")), "outside the file's 8 bytes");
  expect(one(Tensor("a", "F32", "[1]", "[0,8]")), "make 4 bytes");
  expect(one(Tensor("a", "F32", "[1]", "[0,4]") + "," + Tensor("b", "U8", "[5]", "[3,8]")),
         "an overlap of 'b' with 'a'");
  expect(one(Tensor("a", "F32", "[1]", "[0,4]") + "," + Tensor("b", "U8", "[3]", "[5,8]")),
         "a hole between 'a' and 'b'");
  expect(one(Tensor("a", "F32", "[1]", "[0,4]")), "last 4 bytes");
}

// A reader that is older than the file says so, and does not call the file damaged.
TEST(Safetensors, AnUnknownTypeIsNotCalledDamage) {
  const TempFile file(Safetensors("{" + Tensor("a", "F31", "[2]", "[0,8]") + "}", "12345678"));
  const auto tensors = ReadSafetensors(file.descriptor());
  ASSERT_FALSE(tensors);
  EXPECT_EQ(tensors.error().message.find("damaged"), std::string::npos) << tensors.error().message;
}

TEST(Safetensors, TypesOfAnySizeInBitsAreTaken) {
  const std::string header = "{" + Tensor("f4", "F4", "[3,2]", "[0,3]") + "," +
                             Tensor("f6", "F6_E3M2", "[4]", "[3,6]") + "," +
                             Tensor("e2m3", "F6_E2M3", "[4]", "[6,9]") + "," +
                             Tensor("scale", "F8_E8M0", "[1]", "[9,10]") + "," +
                             Tensor("fnuz", "F8_E4M3FNUZ", "[1]", "[10,11]") + "," +
                             Tensor("fnuz2", "F8_E5M2FNUZ", "[1]", "[11,12]") + "," +
                             Tensor("complex", "C64", "[1]", "[12,20]") + "}   ";
  const TempFile file(Safetensors(header, Pattern(20)), ".safetensors");
  const auto tensors = ReadSafetensors(file.descriptor());
  ASSERT_TRUE(tensors) << tensors.error().ToString();
  EXPECT_EQ(tensors->size(), 7U);
  EXPECT_EQ(tensors->front().bytes, 3U);
  EXPECT_EQ(LoadAndVerify("host", file), "");
}

TEST(Flags, AreReadOrNamed) {
  const std::vector<const char*> good = {"x.bin", "--device=host", "--compare", "--chunk_kib=64",
                                         "--chunks=4"};
  const auto flags = ParseFlags(good);
  ASSERT_TRUE(flags) << flags.error().ToString();
  EXPECT_EQ(flags->file, "x.bin");
  EXPECT_EQ(flags->device, "host");
  EXPECT_TRUE(flags->compare);
  EXPECT_EQ(flags->uploader.chunk_bytes, 65'536U);
  EXPECT_TRUE(Validate(flags->uploader));
  for (const char* const bad : {"--chunks=x", "--chunk=1", "--fast"}) {
    const std::vector<const char*> arguments = {"x.bin", bad};
    EXPECT_FALSE(ParseFlags(arguments)) << bad;
  }
  EXPECT_FALSE(ParseFlags({}));
  EXPECT_FALSE(NewTargetDevice("tpu"));
}

TEST(ProgressBar, TellsHowMuchIsDone) {
  EXPECT_EQ(BarText(1'000'000'000, 2'000'000'000),
            "[####################....................]  50 %  1.0 of 2.0 GB");
  EXPECT_EQ(BarText(0, 0).substr(0, 6), "[#####");
}

// What a bar has written when it ends after `done` of 100 bytes.
std::string BarThatEndsAt(uint64_t done) {
  std::FILE* const to = std::tmpfile();
  {
    ProgressBar bar(100, to, /*is_terminal=*/true);
    for (uint64_t at = 0; at <= done; ++at) bar.Show(at);
  }
  std::string text(static_cast<size_t>(std::ftell(to)), '\0');
  std::rewind(to);
  EXPECT_EQ(std::fread(text.data(), 1, text.size(), to), text.size());
  std::fclose(to);
  return text;
}

TEST(ProgressBar, EndsWithWhatWasDone) {
  EXPECT_NE(BarThatEndsAt(100).find("100 %"), std::string::npos);
  const std::string stopped = BarThatEndsAt(37);
  EXPECT_NE(stopped.find(" 37 %"), std::string::npos) << stopped;
  EXPECT_EQ(stopped.find("100 %"), std::string::npos) << stopped;
}

}  // namespace
}  // namespace h2d::load_file
