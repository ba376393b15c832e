// Definitions of norms and their backwards at any size, as people write them.
#ifndef FUSIOND_TESTS_CODEGEN_NORM_GRAPHS_H_
#define FUSIOND_TESTS_CODEGEN_NORM_GRAPHS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/strings/substitute.h"

namespace fusiond::testing {

// Outputs: the normalised input, its mean and the reciprocal of its deviation.
inline std::string LayerNorm(int rows, int columns, absl::string_view dtype = "bf16") {
  return absl::Substitute(R"(fir 1
%x = input : $2[$0,$1]
%w = input : $2[$1]
%f = cast %x {dtype=f32}
%v, %m = var_mean %f {dims=[1], correction=0, keepdim=true}
%d = sub %f, %m
%eps = constant {value=1e-5}
%ve = add %v, %eps
%r = rsqrt %ve
%h = mul %d, %r
%y = mul %h, %w
%o = cast %y {dtype=$2}
output %o
output %m
output %r
)",
                          rows, columns, dtype);
}

// Outputs: the gradients of the weight and of the input.
inline std::string RmsNormBackward(int rows, int columns, absl::string_view dtype = "bf16") {
  return absl::Substitute(R"(fir 1
%x = input : $2[$0,$1]
%g = input : $2[$0,$1]
%r = input : f32[$0,1]
%w = input : $2[$1]
%xf = cast %x {dtype=f32}
%gf = cast %g {dtype=f32}
%wf = cast %w {dtype=f32}
%n = constant {value=$1.0}
%p = mul %xf, %gf
%pr = mul %p, %r
%dw = sum %pr {dims=[0]}
%pw = mul %p, %wf
%s = sum %pw {dims=[1], keepdim=true}
%m = div %s, %n
%r2 = mul %r, %r
%r3 = mul %r2, %r
%c = mul %m, %r3
%wr = mul %wf, %r
%a = mul %gf, %wr
%b = mul %xf, %c
%dx = sub %a, %b
%dwo = cast %dw {dtype=$2}
%dxo = cast %dx {dtype=$2}
output %dwo
output %dxo
)",
                          rows, columns, dtype);
}

// Outputs: the gradients of the input, of the weight and of the bias.
inline std::string LayerNormBackward(int rows, int columns, absl::string_view dtype = "bf16") {
  return absl::Substitute(R"(fir 1
%x = input : $2[$0,$1]
%g = input : $2[$0,$1]
%mean = input : f32[$0,1]
%r = input : f32[$0,1]
%w = input : $2[$1]
%xf = cast %x {dtype=f32}
%gf = cast %g {dtype=f32}
%wf = cast %w {dtype=f32}
%n = constant {value=$1.0}
%d = sub %xf, %mean
%h = mul %d, %r
%gw = mul %gf, %wf
%s1 = sum %gw {dims=[1], keepdim=true}
%m1 = div %s1, %n
%gwh = mul %gw, %h
%s2 = sum %gwh {dims=[1], keepdim=true}
%m2 = div %s2, %n
%a = sub %gw, %m1
%hm = mul %h, %m2
%b = sub %a, %hm
%dx = mul %b, %r
%gh = mul %gf, %h
%dw = sum %gh {dims=[0]}
%db = sum %gf {dims=[0]}
%dxo = cast %dx {dtype=$2}
%dwo = cast %dw {dtype=$2}
%dbo = cast %db {dtype=$2}
output %dxo
output %dwo
output %dbo
)",
                          rows, columns, dtype);
}

}  // namespace fusiond::testing

#endif  // FUSIOND_TESTS_CODEGEN_NORM_GRAPHS_H_
