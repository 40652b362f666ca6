#include "h2d/examples/load_file/safetensors.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "h2d/device/checked_size.h"

namespace h2d::load_file {
namespace {

using nlohmann::json;

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kMostHeaderBytes = 100'000'000;  // as the format's own reader has it

Unexpected Damaged(const std::string& what) {
  return InvalidArgument("The safetensors header is damaged: " + what + ".");
}

Expected<void> ReadAll(int descriptor, uint64_t offset, void* into, uint64_t bytes) {
  auto* at = static_cast<std::byte*>(into);
  while (bytes > 0) {
    const ssize_t got = pread(descriptor, at, bytes, static_cast<off_t>(offset));
    if (got <= 0) {
      return Damaged("the file could not be read at offset " + std::to_string(offset));
    }
    at += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<uint64_t>(got);
  }
  return {};
}

std::optional<uint64_t> BytesOfType(std::string_view type) {
  constexpr std::array<std::pair<std::string_view, uint64_t>, 15> kTypes = {{{"BOOL", 1},
                                                                             {"U8", 1},
                                                                             {"I8", 1},
                                                                             {"F8_E4M3", 1},
                                                                             {"F8_E5M2", 1},
                                                                             {"U16", 2},
                                                                             {"I16", 2},
                                                                             {"F16", 2},
                                                                             {"BF16", 2},
                                                                             {"U32", 4},
                                                                             {"I32", 4},
                                                                             {"F32", 4},
                                                                             {"U64", 8},
                                                                             {"I64", 8},
                                                                             {"F64", 8}}};
  for (const auto& [name, bytes] : kTypes) {
    if (name == type) return bytes;
  }
  return std::nullopt;
}

// The bytes that a tensor of this type and shape has.
Expected<uint64_t> BytesOf(const std::string& name, const json& tensor) {
  const auto type = tensor.find("dtype");
  if (type == tensor.end() || !type->is_string()) return Damaged("'" + name + "' has no dtype");
  const auto element = BytesOfType(type->get_ref<const std::string&>());
  if (!element) {
    return Damaged("'" + name + "' has the unknown dtype '" + type->get_ref<const std::string&>() +
                   "'");
  }
  const auto shape = tensor.find("shape");
  if (shape == tensor.end() || !shape->is_array()) return Damaged("'" + name + "' has no shape");
  uint64_t bytes = *element;
  for (const json& extent : *shape) {
    if (!extent.is_number_unsigned()) {
      return Damaged("'" + name + "' has an extent that is no whole number of 0 or more");
    }
    const auto product = CheckedBytes(bytes, extent.get<uint64_t>());
    if (!product) return Damaged("the size of '" + name + "' overflows 64 bits");
    bytes = *product;
  }
  return bytes;
}

Expected<TensorInfo> ReadTensor(const std::string& name, const json& tensor, uint64_t data_begin,
                                uint64_t data_bytes) {
  if (!tensor.is_object()) return Damaged("'" + name + "' is no object");
  auto bytes = BytesOf(name, tensor);
  if (!bytes) return ErrorOf(bytes);
  const auto offsets = tensor.find("data_offsets");
  const bool is_pair = offsets != tensor.end() && offsets->is_array() && offsets->size() == 2 &&
                       (*offsets)[0].is_number_unsigned() && (*offsets)[1].is_number_unsigned();
  if (!is_pair) return Damaged("'" + name + "' has no pair of data_offsets");
  const auto begin = (*offsets)[0].get<uint64_t>();
  const auto end = (*offsets)[1].get<uint64_t>();
  const std::string range = "[" + std::to_string(begin) + ", " + std::to_string(end) + ")";
  if (begin > end || end > data_bytes) {
    return Damaged("'" + name + "' lies at " + range + ", outside the file's " +
                   std::to_string(data_bytes) + " bytes of data");
  }
  if (end - begin != *bytes) {
    return Damaged("'" + name + "' lies at " + range + ", but its dtype and shape make " +
                   std::to_string(*bytes) + " bytes");
  }
  return TensorInfo{name, data_begin + begin, *bytes};
}

Expected<void> CheckCover(const std::vector<TensorInfo>& tensors, uint64_t begin, uint64_t end) {
  uint64_t at = begin;
  std::string before = "the header";
  for (const TensorInfo& tensor : tensors) {
    if (tensor.offset != at) {
      return Damaged(std::string(tensor.offset < at ? "an overlap of " : "a hole between ") +
                     (tensor.offset < at ? "'" + tensor.name + "' with " + before
                                         : before + " and '" + tensor.name + "'") +
                     " at offset " + std::to_string(tensor.offset) + " of the file");
    }
    at += tensor.bytes;
    before = "'" + tensor.name + "'";
  }
  if (at == end) return {};
  return Damaged("no tensor covers the file's last " + std::to_string(end - at) + " bytes");
}

Expected<std::vector<TensorInfo>> ReadTensors(const json& header, uint64_t begin, uint64_t end) {
  std::vector<TensorInfo> tensors;
  for (const auto& [name, tensor] : header.items()) {
    if (name == "__metadata__") continue;
    auto info = ReadTensor(name, tensor, begin, end - begin);
    if (!info) return ErrorOf(info);
    tensors.push_back(std::move(*info));
  }
  std::sort(tensors.begin(), tensors.end(), [](const TensorInfo& a, const TensorInfo& b) {
    return std::tie(a.offset, a.bytes) < std::tie(b.offset, b.bytes);
  });
  if (auto covered = CheckCover(tensors, begin, end); !covered) return ErrorOf(covered);
  return tensors;
}

}  // namespace

Expected<std::vector<TensorInfo>> ReadSafetensors(int descriptor) {
  struct stat status = {};
  if (fstat(descriptor, &status) != 0) return Damaged("the file is not open");
  const auto file_bytes = static_cast<uint64_t>(status.st_size);
  if (file_bytes < kLengthBytes) {
    return Damaged("the file has " + std::to_string(file_bytes) +
                   " bytes, and the header's length alone takes 8");
  }
  std::array<uint8_t, kLengthBytes> raw = {};
  if (auto read = ReadAll(descriptor, 0, raw.data(), raw.size()); !read) return ErrorOf(read);
  uint64_t length = 0;
  for (size_t i = 0; i < raw.size(); ++i) length |= uint64_t{raw[i]} << (8 * i);
  if (length > kMostHeaderBytes || length > file_bytes - kLengthBytes) {
    return Damaged("its length is " + std::to_string(length) + ", in a file of " +
                   std::to_string(file_bytes) + " bytes");
  }
  std::string text(length, '\0');
  if (auto read = ReadAll(descriptor, kLengthBytes, text.data(), length); !read)
    return ErrorOf(read);
  const json header = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!header.is_object()) return Damaged("it is no JSON object");
  return ReadTensors(header, kLengthBytes + length, file_bytes);
}

}  // namespace h2d::load_file
