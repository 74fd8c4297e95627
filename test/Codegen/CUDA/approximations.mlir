// Exponentials and tanh use the instructions that approximate them where docs/numerics.md allows: 2 units in the last
// place of f32 for exp, 4 for tanh, 1 of 16 bits; tanh.approx has an error of 2^-11.
// RUN: tessera-opt %s --tessera-compile-gpu-kernels="arch=compute_80 print-ptx" -o /dev/null | FileCheck %s
// RUN: tessera-opt %s --tessera-check-gpu-kernels -o /dev/null | FileCheck %s --check-prefix=EQUAL

// The argument is reduced first, since its product with log2(e) loses digits.
// CHECK-LABEL: exp_f32: launches 1
// CHECK: fma.rn.f32
// CHECK: ex2.approx.ftz.f32
// CHECK-NOT: ex2.approx.f32
// CHECK: st.global
// EQUAL: exp_f32: pointwise equal
func.func private @exp_f32(%x: tensor<4096xf32>, %out: tensor<4096xf32>) -> tensor<4096xf32>
    attributes {kernel.reads = 1 : i64} {
  %y = math.exp %x : tensor<4096xf32>
  return %y : tensor<4096xf32>
}

// Subnormal results remain.
// CHECK-LABEL: exp2_f32: launches 1
// CHECK-NOT: fma
// CHECK: ex2.approx.f32
// CHECK: st.global
// EQUAL: exp2_f32: pointwise equal
func.func private @exp2_f32(%x: tensor<4096xf32>, %out: tensor<4096xf32>) -> tensor<4096xf32>
    attributes {kernel.reads = 1 : i64} {
  %y = math.exp2 %x : tensor<4096xf32>
  return %y : tensor<4096xf32>
}

// CHECK-LABEL: tanh_f32: launches 1
// CHECK-NOT: tanh.approx
// CHECK: ex2.approx.ftz.f32
// CHECK-NOT: tanh.approx
// CHECK: st.global
// EQUAL: tanh_f32: pointwise equal
func.func private @tanh_f32(%x: tensor<4096xf32>, %out: tensor<4096xf32>) -> tensor<4096xf32>
    attributes {kernel.reads = 1 : i64} {
  %y = math.tanh %x : tensor<4096xf32>
  return %y : tensor<4096xf32>
}

// CHECK-LABEL: tanh_bf16: launches 1
// CHECK-NOT: {{fma|div}}
// CHECK: tanh.approx.f32
// CHECK-NOT: {{fma|div}}
// CHECK: st.global
// EQUAL: tanh_bf16: pointwise equal
func.func private @tanh_bf16(%x: tensor<4096xbf16>, %out: tensor<4096xbf16>) -> tensor<4096xbf16>
    attributes {kernel.reads = 1 : i64} {
  %y = math.tanh %x : tensor<4096xbf16>
  return %y : tensor<4096xbf16>
}

// CHECK-LABEL: exp_f16: launches 1
// CHECK-NOT: fma
// CHECK: ex2.approx.f32
// CHECK-NOT: fma
// CHECK: st.global
// EQUAL: exp_f16: pointwise equal
func.func private @exp_f16(%x: tensor<4096xf16>, %out: tensor<4096xf16>) -> tensor<4096xf16>
    attributes {kernel.reads = 1 : i64} {
  %y = math.exp %x : tensor<4096xf16>
  return %y : tensor<4096xf16>
}

// A result that is also read as f32 has the bound of f32.
// CHECK-LABEL: both: launches 1
// CHECK-NOT: tanh.approx
// CHECK: st.global
// EQUAL: both: pointwise equal
func.func private @both(%x: tensor<4096xf32>, %narrow: tensor<4096xbf16>, %wide: tensor<4096xf32>)
    -> (tensor<4096xbf16>, tensor<4096xf32>) attributes {kernel.reads = 1 : i64} {
  %y = math.tanh %x : tensor<4096xf32>
  %z = arith.truncf %y : tensor<4096xf32> to tensor<4096xbf16>
  return %z, %y : tensor<4096xbf16>, tensor<4096xf32>
}

// CHECK-LABEL: exp_f64: launches 1
// CHECK-NOT: approx
// CHECK: st.global
// EQUAL: exp_f64: pointwise equal
func.func private @exp_f64(%x: tensor<96xf64>, %out: tensor<96xf64>) -> tensor<96xf64>
    attributes {kernel.reads = 1 : i64} {
  %y = math.exp %x : tensor<96xf64>
  return %y : tensor<96xf64>
}
