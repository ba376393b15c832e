#include "tests/emulation/cases.h"

#include <cmath>
#include <cstdint>
#include <random>

#include "absl/strings/str_cat.h"
#include "compiler/device/device_text.h"
#include "runtime/base/check.h"
#include "runtime/base/status_macros.h"

namespace fusiond::device {
extern const DeviceFile kKernelFiles[];
extern const int kKernelFilesCount;
}  // namespace fusiond::device

namespace fusiond::emulation {
namespace {

using Values = std::vector<float>;

std::string ReadBody(const std::string& name) {
  for (int i = 0; i < device::kKernelFilesCount; i++) {
    const device::DeviceFile& file = device::kKernelFiles[i];
    if (file.name == name + ".cuh") return std::string(file.text);
  }
  FUSIOND_CHECK(false && "no such kernel");
  return "";
}

// Small whole numbers, so that sums are exact in any order.
Values WholeNumbers(size_t count, int seed) {
  std::mt19937 random(seed);
  Values values(count);
  for (float& v : values) v = static_cast<float>(static_cast<int>(random() % 33) - 16);
  return values;
}

// `tensor` of the results must be `expected` within `tolerance`, relative to 1 + |expected|.
std::string Expect(const std::vector<std::string>& results, int tensor, const Values& expected,
                   double tolerance = 0) {
  const Values got = As<float>(results[tensor]);
  for (size_t i = 0; i < expected.size(); i++) {
    if (!(std::fabs(got[i] - expected[i]) <= tolerance * (1 + std::fabs(expected[i]))))
      return absl::StrCat("element ", i, " of tensor ", tensor, " is ", got[i], ", not ",
                          expected[i]);
  }
  return "";
}

uint16_t ToBf16(float f) {
  uint32_t u;
  std::memcpy(&u, &f, 4);
  return static_cast<uint16_t>((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
float FromBf16(uint16_t h) {
  const uint32_t u = static_cast<uint32_t>(h) << 16;
  float f;
  std::memcpy(&f, &u, 4);
  return f;
}

Case RowScale() {
  const uint32_t rows = 7, columns = 300;
  const Values x = WholeNumbers(rows * columns, 1);
  Values y(x.size());
  for (uint32_t r = 0; r < rows; r++) {
    float sum = 0;
    for (uint32_t c = 0; c < columns; c++) sum += std::fabs(x[r * columns + c]);
    for (uint32_t c = 0; c < columns; c++) y[r * columns + c] = x[r * columns + c] / sum;
  }
  return {"row_scale",
          ReadBody("row_scale"),
          {{"",
            {.entry = "row_scale",
             .grid_x = 3,
             .threads = 128,
             .smem_bytes = 16,
             .arguments = {In(0), In(1), Value(rows), Value(columns)}}}},
          {Of(x), Poison(x.size() * 4)},
          [y](const auto& results) { return Expect(results, 1, y); }};
}

Case Pointwise() {
  const uint32_t n = 1003;
  std::vector<uint16_t> x(n), b(8);
  const Values values = WholeNumbers(n + 8, 2);
  for (uint32_t i = 0; i < n; i++) x[i] = ToBf16(values[i] / 4);
  for (int i = 0; i < 8; i++) b[i] = ToBf16(values[n + i]);
  return {"pointwise",
          ReadBody("pointwise"),
          {{"",
            {.entry = "pointwise",
             .grid_x = 2,
             .threads = 64,
             .arguments = {In(0), In(1), In(2), Value(n)}}}},
          {Of(x), Of(b), Poison(n * 2)},
          [x, b](const auto& results) -> std::string {
            const auto y = As<uint16_t>(results[2]);
            for (size_t i = 0; i < x.size(); i++) {
              const double u = FromBf16(x[i]), want = u / (1 + std::exp(-u)) + FromBf16(b[i % 8]);
              if (!(std::fabs(FromBf16(y[i]) - want) <= 0.005 * (1 + std::fabs(want))))
                return absl::StrCat("element ", i, " is ", FromBf16(y[i]), ", not ", want);
            }
            return "";
          }};
}

Case Relay() {
  const uint32_t steps = 5;
  const Values x = WholeNumbers(96, 3);
  Values y = x;
  for (float& v : y) v *= 32;
  return {"relay",
          ReadBody("relay"),
          {{"",
            {.entry = "relay",
             .threads = 128,
             .smem_bytes = 384,
             .arguments = {In(0), In(1), Value(steps)}}}},
          {Of(x), Poison(384)},
          [y](const auto& results) { return Expect(results, 1, y); }};
}

Case Ring() {
  const uint32_t rows = 14;
  const Values x = WholeNumbers(rows * 256, 4);
  Values y = x;
  for (uint32_t r = 0; r < rows; r++) {
    float sum = 0;
    for (int c = 0; c < 256; c++) sum += x[r * 256 + c];
    for (int c = 0; c < 256; c++) y[r * 256 + c] -= sum / 256;
  }
  return {"ring",
          ReadBody("ring"),
          {{"",
            {.entry = "ring",
             .grid_x = 2,
             .threads = 64,
             .smem_bytes = 256 + 3 * 1024,
             .arguments = {In(0), In(1), Value(rows)}}}},
          {Of(x), Poison(x.size() * 4)},
          [y](const auto& results) { return Expect(results, 1, y); },
          true};
}

Case Pipeline() {
  const uint32_t rows = 11;
  const Values x = WholeNumbers(rows * 128, 5);
  Values y(x.size());
  for (size_t i = 0; i < x.size(); i++) y[i] = x[i / 128 * 128 + 127 - i % 128];
  return {"pipeline",
          ReadBody("pipeline"),
          {{"",
            {.entry = "pipeline",
             .grid_x = 2,
             .threads = 32,
             .smem_bytes = 3 * 512,
             .arguments = {In(0), In(1), Value(rows)}}}},
          {Of(x), Poison(x.size() * 4)},
          [y](const auto& results) { return Expect(results, 1, y); }};
}

Case ClusterSums() {
  const uint32_t rows = 3, size = 2, columns = 200;
  const Values x = WholeNumbers(rows * columns, 6);
  Values y(rows, 0), z(rows * size);
  for (uint32_t i = 0; i < x.size(); i++) y[i / columns] += x[i];
  for (uint32_t i = 0; i < z.size(); i++) z[i] = x[i / size * columns + (i % size + 1) % size];
  return {"cluster",
          ReadBody("cluster"),
          {{"",
            {.entry = "cluster",
             .grid_x = rows * size,
             .threads = 64,
             .cluster = size,
             .smem_bytes = 272,
             .arguments = {In(0), In(1), In(2), Value(columns), Value(size)}}}},
          {Of(x), Poison(y.size() * 4), Poison(z.size() * 4)},
          [y, z](const auto& results) {
            const std::string wrong = Expect(results, 1, y);
            return wrong.empty() ? Expect(results, 2, z) : wrong;
          },
          true};
}

Case Chain() {
  const uint32_t rows = 10, columns = 90, count = 3;
  const Values x = WholeNumbers(rows * columns, 7);
  Values y(columns, 0);
  for (uint32_t i = 0; i < x.size(); i++) y[i % columns] += x[i];
  return {"chain",
          ReadBody("chain"),
          {{"",
            {.entry = "partials",
             .grid_x = count,
             .threads = 64,
             .arguments = {In(0), In(1), Value(rows), Value(columns)}}},
           {"",
            {.entry = "finalise",
             .grid_x = 3,
             .threads = 32,
             .dependent = true,
             .arguments = {In(1), In(2), Value(count), Value(columns)}}}},
          {Of(x), Poison(count * columns * 4), Poison(columns * 4)},
          [y](const auto& results) { return Expect(results, 2, y); }};
}

}  // namespace

std::vector<Case> AllCases() {
  return {RowScale(), Pointwise(), Relay(), Ring(), Pipeline(), ClusterSums(), Chain()};
}

absl::Status RunCase(Case the_case, const std::string& body, const KernelRunner& runner) {
  const std::string text =
      device::Prelude({"load_store.cuh", "reduce.cuh", "copy.cuh", "cluster.cuh", "pdl.cuh",
                       "math_strict.cuh", "math_fast.cuh", "random.cuh"}) +
      body;
  for (KernelCall& call : the_case.chain) call.text = text;
  FUSIOND_ASSIGN_OR_RETURN(std::vector<std::string> results,
                           runner(the_case.chain, the_case.tensors));
  const std::string wrong = the_case.check(results);
  return wrong.empty() ? absl::OkStatus() : absl::AbortedError("wrong: " + wrong);
}

}  // namespace fusiond::emulation
