#include "client/cli/inputs.h"

#include <cmath>
#include <cstring>
#include <random>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/npy.h"
#include "client/cli/support.h"
#include "runtime/base/element.h"
#include "runtime/base/file.h"
#include "runtime/base/status_macros.h"

namespace fusiond::cli {
namespace {

constexpr size_t kMostHeaderBytes = 1 << 20;

// One element of any dtype.
struct Element {
  double number = 0;
  int64_t integer = 0;  // of bools and integers
};

// A scalar stands in 8 bytes whatever its dtype.
base::DType StoredAs(const HostArray& array) {
  if (!array.scalar) return array.dtype;
  return base::IsFloatingPoint(array.dtype) ? base::DType::kDouble : base::DType::kInt;
}

void Store(const Element& element, base::DType dtype, char* at) {
  if (base::IsFloatingPoint(dtype)) {
    base::StoreFloat(dtype, element.number, at);
  } else {
    base::StoreInteger(dtype, element.integer, at);
  }
}

// Every place of the array, also those between its elements.
template <typename Next>
void FillPlaces(HostArray& array, Next next) {
  const base::DType dtype = StoredAs(array);
  const auto size = static_cast<size_t>(base::ByteSize(dtype));
  for (size_t at = 0; at < array.data.size(); at += size)
    Store(next(), dtype, array.data.data() + at);
}

std::string Describe(size_t input, const HostArray& array) {
  std::string text = absl::StrCat("input ", input, " is ", base::DTypeName(array.dtype));
  if (!array.scalar) absl::StrAppend(&text, "[", absl::StrJoin(array.shape, ","), "]");
  return text;
}

absl::StatusOr<Element> ParseElement(base::DType dtype, const std::string& text) {
  Element element;
  bool good = false;
  if (dtype == base::DType::kBool) {
    good = text == "true" || text == "false" || text == "1" || text == "0";
    element.integer = text == "true" || text == "1";
  } else if (base::IsInteger(dtype)) {
    good = absl::SimpleAtoi(text, &element.integer) &&
           (dtype == base::DType::kInt || element.integer == static_cast<int32_t>(element.integer));
  } else {
    // As for constants of a graph: rounded, but not out of the dtype's range; inf has no digits.
    good = absl::SimpleAtod(text, &element.number) &&
           (std::isfinite(base::RoundTo(dtype, element.number)) ||
            text.find_first_of("0123456789") == std::string::npos);
  }
  if (good) return element;
  return absl::InvalidArgumentError(
      absl::StrCat("'", absl::CHexEscape(text), "' is no ", base::DTypeName(dtype)));
}

// Copies row-major elements to where the array has them.
absl::Status Place(absl::string_view elements, HostArray& array) {
  const auto size = static_cast<size_t>(base::ByteSize(array.dtype));
  if (array.scalar) {
    Element element;
    if (base::IsFloatingPoint(array.dtype)) {
      element.number = base::LoadFloat(array.dtype, elements.data());
    } else {
      element.integer = base::LoadInteger(array.dtype, elements.data());
    }
    Store(element, StoredAs(array), array.data.data());
    return absl::OkStatus();
  }
  bool clash = false;
  for (const bool check : {false, true}) {  // dims of stride 0 share their places
    const char* from = elements.data();
    ForEachElement(array, [&](size_t at) {
      if (check) {
        clash = clash || std::memcmp(array.data.data() + at, from, size) != 0;
      } else {
        std::memcpy(array.data.data() + at, from, size);
      }
      from += size;
    });
  }
  if (!clash) return absl::OkStatus();
  return absl::InvalidArgumentError("elements along an expanded dim differ, and share one place");
}

absl::Status ReadInto(const std::string& path, HostArray& array) {
  size_t bytes = static_cast<size_t>(base::ByteSize(array.dtype));
  for (int64_t extent : array.shape) bytes *= static_cast<size_t>(extent);
  FUSIOND_ASSIGN_OR_RETURN(const std::string file, base::ReadFile(path, bytes + kMostHeaderBytes));
  absl::string_view elements = file;
  if (IsNpy(file)) {
    FUSIOND_ASSIGN_OR_RETURN(const NpyHeader header, ReadNpyHeader(file));
    if (header.dtype != array.dtype || header.shape != array.shape) {
      return absl::InvalidArgumentError(absl::StrCat("the file has ", base::DTypeName(header.dtype),
                                                     "[", absl::StrJoin(header.shape, ","), "]"));
    }
    elements.remove_prefix(header.data_offset);
  }
  if (elements.size() != bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("takes ", bytes, " bytes of elements, the file has ", elements.size()));
  }
  return Place(elements, array);
}

absl::Status Apply(const InputSetting& setting, HostArray& array) {
  if (!setting.file.empty()) return ReadInto(setting.file, array);
  FUSIOND_ASSIGN_OR_RETURN(const Element element, ParseElement(array.dtype, setting.value));
  FillPlaces(array, [&] { return element; });
  return absl::OkStatus();
}

void FillRandomly(std::mt19937_64& random, HostArray& array) {
  bool alone = true;
  for (int64_t extent : array.shape) alone = alone && extent == 1;
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> near_1(0.5, 1.5);
  std::uniform_int_distribution<int64_t> small(-8, 8), positive(1, 8);
  FillPlaces(array, [&]() -> Element {
    if (array.dtype == base::DType::kBool) return {0, positive(random) & 1};
    if (base::IsInteger(array.dtype)) return {0, alone ? positive(random) : small(random)};
    return {alone ? near_1(random) : normal(random), 0};
  });
}

}  // namespace

absl::StatusOr<InputSetting> ParseInputSetting(absl::string_view text) {
  InputSetting setting;
  const size_t equals = text.find('=');
  const absl::string_view value =
      equals == absl::string_view::npos ? absl::string_view() : text.substr(equals + 1);
  if (value.empty() || value == "@" || !absl::SimpleAtoi(text.substr(0, equals), &setting.input)) {
    return absl::InvalidArgumentError(absl::StrCat("--input: '", absl::CHexEscape(text),
                                                   "' is neither INDEX=VALUE nor INDEX=@FILE"));
  }
  if (value[0] == '@') {
    setting.file = std::string(value.substr(1));
  } else {
    setting.value = std::string(value);
  }
  return setting;
}

absl::StatusOr<std::vector<HostArray>> MakeInputs(const ir::Graph& graph,
                                                  const std::vector<client::Layout>& layouts,
                                                  absl::Span<const InputSetting> settings,
                                                  uint64_t seed) {
  MemoryBudget budget;
  std::vector<HostArray> inputs;
  for (size_t i = 0; i < layouts.size(); ++i) {
    const ir::Type& type = graph.type(graph.inputs()[i]);
    HostArray array{type.dtype, type.scalar, layouts[i].shape, layouts[i].strides, {}};
    FUSIOND_RETURN_IF_ERROR(budget.Add("input", i, Footprint(array)));
    inputs.push_back(std::move(array));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    HostArray& array = inputs[i];
    array.data.resize(array.scalar ? 8 : Footprint(array));
    std::mt19937_64 random(seed * 1024 + i);
    FillRandomly(random, array);
  }
  for (const InputSetting& setting : settings) {
    if (setting.input >= inputs.size()) {
      return WrongUsage(absl::InvalidArgumentError(absl::StrCat(
          "--input: there is no input ", setting.input, ", the graph has ", inputs.size())));
    }
    const absl::Status applied = Apply(setting, inputs[setting.input]);
    if (!applied.ok()) {
      return WrongUsage(absl::Status(
          applied.code(), absl::StrCat("--input: ", Describe(setting.input, inputs[setting.input]),
                                       ": ", applied.message())));
    }
  }
  return inputs;
}

}  // namespace fusiond::cli
