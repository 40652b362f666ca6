#include "h2d/examples/load_file/safetensors.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "h2d/device/checked_size.h"
#include "h2d/examples/load_file/shown_name.h"

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

// Elements are not looked at: that the size is known is all it takes.
std::optional<uint64_t> BitsOfType(std::string_view type) {
  using Type = std::pair<std::string_view, uint64_t>;
  static constexpr auto kTypes = std::to_array<Type>({
      {"BOOL", 8},        {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
      {"I8", 8},          {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
      {"F8_E5M2FNUZ", 8}, {"U16", 16},    {"I16", 16},    {"F16", 16},    {"BF16", 16},
      {"U32", 32},        {"I32", 32},    {"F32", 32},    {"U64", 64},    {"I64", 64},
      {"F64", 64},        {"C64", 64},
  });
  for (const auto& [name, bits] : kTypes) {
    if (name == type) return bits;
  }
  return std::nullopt;
}

// The bytes that a tensor of this type and shape has.
Expected<uint64_t> BytesOf(const std::string& name, const json& tensor) {
  const auto type = tensor.find("dtype");
  if (type == tensor.end() || !type->is_string()) return Damaged(name + " has no dtype");
  const auto element = BitsOfType(type->get_ref<const std::string&>());
  if (!element) {
    return InvalidArgument("The tensor " + name + " has the unknown dtype " +
                           ShownName(type->get_ref<const std::string&>()) +
                           "; the header may be right and of a newer format.");
  }
  const auto shape = tensor.find("shape");
  if (shape == tensor.end() || !shape->is_array()) return Damaged(name + " has no shape");
  uint64_t bits = *element;
  for (const json& extent : *shape) {
    if (!extent.is_number_unsigned())
      return Damaged(name + " has an extent that is no whole number of 0 or more");
    const auto product = CheckedBytes(bits, extent.get<uint64_t>());
    if (!product) return Damaged("the size of " + name + " in bits overflows 64 bits");
    bits = *product;
  }
  if (bits % 8 != 0)
    return Damaged(name + " has " + std::to_string(bits) + " bits, which are no whole bytes");
  return bits / 8;
}

Expected<TensorInfo> ReadTensor(const std::string& name, const json& tensor, uint64_t data_begin,
                                uint64_t data_bytes) {
  const std::string shown = ShownName(name);
  if (!tensor.is_object()) return Damaged(shown + " is no object");
  auto bytes = BytesOf(shown, tensor);
  if (!bytes) return ErrorOf(bytes);
  const auto offsets = tensor.find("data_offsets");
  const bool is_pair = offsets != tensor.end() && offsets->is_array() && offsets->size() == 2 &&
                       (*offsets)[0].is_number_unsigned() && (*offsets)[1].is_number_unsigned();
  if (!is_pair) return Damaged(shown + " has no pair of data_offsets");
  const auto begin = (*offsets)[0].get<uint64_t>();
  const auto end = (*offsets)[1].get<uint64_t>();
  const std::string range = "[" + std::to_string(begin) + ", " + std::to_string(end) + ")";
  if (begin > end || end > data_bytes) {
    return Damaged(shown + " lies at " + range + ", outside the file's " +
                   std::to_string(data_bytes) + " bytes of data");
  }
  if (end - begin != *bytes) {
    return Damaged(shown + " lies at " + range + ", but its dtype and shape make " +
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
                     (tensor.offset < at ? ShownName(tensor.name) + " with " + before
                                         : before + " and " + ShownName(tensor.name)) +
                     " at offset " + std::to_string(tensor.offset) + " of the file");
    }
    at += tensor.bytes;
    before = ShownName(tensor.name);
  }
  if (at == end) return {};
  return Damaged("no tensor covers the file's last " + std::to_string(end - at) + " bytes");
}

// A map of strings to strings, as the format has it.
Expected<void> CheckMetadata(const json& metadata) {
  if (!metadata.is_object()) return Damaged("'__metadata__' is no object");
  for (const auto& [key, value] : metadata.items()) {
    if (!value.is_string())
      return Damaged("the value of " + ShownName(key) + " in '__metadata__' is no string");
  }
  return {};
}

Expected<std::vector<TensorInfo>> ReadTensors(const json& header, uint64_t begin, uint64_t end) {
  std::vector<TensorInfo> tensors;
  for (const auto& [name, tensor] : header.items()) {
    if (name == "__metadata__") {
      if (auto valid = CheckMetadata(tensor); !valid) return ErrorOf(valid);
      continue;
    }
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

// The JSON parser would keep the last of two equal keys, and take a byte of 0 for the text's end.
Expected<json> ParseHeader(const std::string& text) {
  if (!text.starts_with('{')) return Damaged("it is no JSON object that begins at its first byte");
  if (const size_t at = text.find('\0'); at != std::string::npos)
    return Damaged("it holds a byte of 0 at offset " + std::to_string(at));
  std::vector<std::set<std::string>> keys;  // of each open object
  std::optional<std::string> twice;
  const auto note = [&](int, json::parse_event_t event, const json& parsed) {
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys.back().insert(key).second && !twice) twice = key;
    }
    return true;
  };
  json header = json::parse(text, note, /*allow_exceptions=*/false);
  if (!header.is_object()) return Damaged("it is no JSON object");
  if (twice) return Damaged("the key " + ShownName(*twice) + " comes twice in one object");
  return header;
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
  auto header = ParseHeader(text);
  if (!header) return ErrorOf(header);
  return ReadTensors(*header, kLengthBytes + length, file_bytes);
}

}  // namespace h2d::load_file
