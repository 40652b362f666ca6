#include "h2d/examples/load_file/shown_name.h"

#include <nlohmann/json.hpp>

namespace h2d::load_file {

std::string ShownName(const std::string& name) {
  using nlohmann::json;
  std::string text =
      json(name).dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace);
  text.front() = text.back() = '\'';
  return text;
}

}  // namespace h2d::load_file
