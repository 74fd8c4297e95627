// Functions without an instruction are expanded: PTX has no library to call.
// RUN: tessera-opt %s --tessera-compile-gpu-kernels="arch=compute_80 print-ptx" -o /dev/null | FileCheck %s --implicit-check-not=".extern .func" --implicit-check-not=call
// RUN: tessera-opt %s --tessera-check-gpu-kernels -o /dev/null | FileCheck %s --check-prefix=EQUAL

// CHECK: .visible .entry
// EQUAL: exp_f64: pointwise equal
func.func private @exp_f64(%x: tensor<96xf64>, %o: tensor<96xf64>) -> tensor<96xf64> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf64>
  %y = arith.mulf %x, %s : tensor<96xf64>
  %0 = math.exp %y : tensor<96xf64>
  return %0 : tensor<96xf64>
}
// EQUAL: exp2_f64: pointwise equal
func.func private @exp2_f64(%x: tensor<96xf64>, %o: tensor<96xf64>) -> tensor<96xf64> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf64>
  %y = arith.mulf %x, %s : tensor<96xf64>
  %0 = math.exp2 %y : tensor<96xf64>
  return %0 : tensor<96xf64>
}
// EQUAL: expm1_f64: pointwise equal
func.func private @expm1_f64(%x: tensor<96xf64>, %o: tensor<96xf64>) -> tensor<96xf64> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf64>
  %y = arith.mulf %x, %s : tensor<96xf64>
  %0 = math.expm1 %y : tensor<96xf64>
  return %0 : tensor<96xf64>
}
// EQUAL: log_f64: pointwise equal
func.func private @log_f64(%x: tensor<96xf64>, %o: tensor<96xf64>) -> tensor<96xf64> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf64>
  %y = arith.mulf %x, %s : tensor<96xf64>
  %0 = math.log %y : tensor<96xf64>
  return %0 : tensor<96xf64>
}
// EQUAL: log2_f64: pointwise equal
func.func private @log2_f64(%x: tensor<96xf64>, %o: tensor<96xf64>) -> tensor<96xf64> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf64>
  %y = arith.mulf %x, %s : tensor<96xf64>
  %0 = math.log2 %y : tensor<96xf64>
  return %0 : tensor<96xf64>
}
// EQUAL: log10_f64: pointwise equal
func.func private @log10_f64(%x: tensor<96xf64>, %o: tensor<96xf64>) -> tensor<96xf64> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf64>
  %y = arith.mulf %x, %s : tensor<96xf64>
  %0 = math.log10 %y : tensor<96xf64>
  return %0 : tensor<96xf64>
}
// EQUAL: log1p_f64: pointwise equal
func.func private @log1p_f64(%x: tensor<96xf64>, %o: tensor<96xf64>) -> tensor<96xf64> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf64>
  %y = arith.mulf %x, %s : tensor<96xf64>
  %0 = math.log1p %y : tensor<96xf64>
  return %0 : tensor<96xf64>
}
// EQUAL: tanh_f64: pointwise equal
func.func private @tanh_f64(%x: tensor<96xf64>, %o: tensor<96xf64>) -> tensor<96xf64> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf64>
  %y = arith.mulf %x, %s : tensor<96xf64>
  %0 = math.tanh %y : tensor<96xf64>
  return %0 : tensor<96xf64>
}
// EQUAL: sinh_f64: pointwise equal
func.func private @sinh_f64(%x: tensor<96xf64>, %o: tensor<96xf64>) -> tensor<96xf64> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf64>
  %y = arith.mulf %x, %s : tensor<96xf64>
  %0 = math.sinh %y : tensor<96xf64>
  return %0 : tensor<96xf64>
}
// EQUAL: cosh_f64: pointwise equal
func.func private @cosh_f64(%x: tensor<96xf64>, %o: tensor<96xf64>) -> tensor<96xf64> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf64>
  %y = arith.mulf %x, %s : tensor<96xf64>
  %0 = math.cosh %y : tensor<96xf64>
  return %0 : tensor<96xf64>
}
// EQUAL: asinh_f64: pointwise equal
func.func private @asinh_f64(%x: tensor<96xf64>, %o: tensor<96xf64>) -> tensor<96xf64> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf64>
  %y = arith.mulf %x, %s : tensor<96xf64>
  %0 = math.asinh %y : tensor<96xf64>
  return %0 : tensor<96xf64>
}
// EQUAL: acosh_f64: pointwise equal
func.func private @acosh_f64(%x: tensor<96xf64>, %o: tensor<96xf64>) -> tensor<96xf64> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf64>
  %y = arith.mulf %x, %s : tensor<96xf64>
  %0 = math.acosh %y : tensor<96xf64>
  return %0 : tensor<96xf64>
}
// EQUAL: atanh_f64: pointwise equal
func.func private @atanh_f64(%x: tensor<96xf64>, %o: tensor<96xf64>) -> tensor<96xf64> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf64>
  %y = arith.mulf %x, %x : tensor<96xf64>
  %0 = math.atanh %y : tensor<96xf64>
  return %0 : tensor<96xf64>
}
// EQUAL: sin_f64: pointwise equal
func.func private @sin_f64(%x: tensor<96xf64>, %o: tensor<96xf64>) -> tensor<96xf64> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf64>
  %y = arith.mulf %x, %s : tensor<96xf64>
  %0 = math.sin %y : tensor<96xf64>
  return %0 : tensor<96xf64>
}
// EQUAL: cos_f64: pointwise equal
func.func private @cos_f64(%x: tensor<96xf64>, %o: tensor<96xf64>) -> tensor<96xf64> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf64>
  %y = arith.mulf %x, %s : tensor<96xf64>
  %0 = math.cos %y : tensor<96xf64>
  return %0 : tensor<96xf64>
}
// EQUAL: tan_f64: pointwise equal
func.func private @tan_f64(%x: tensor<96xf64>, %o: tensor<96xf64>) -> tensor<96xf64> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf64>
  %y = arith.mulf %x, %s : tensor<96xf64>
  %0 = math.tan %y : tensor<96xf64>
  return %0 : tensor<96xf64>
}
// EQUAL: atan_f64: pointwise equal
func.func private @atan_f64(%x: tensor<96xf64>, %o: tensor<96xf64>) -> tensor<96xf64> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf64>
  %y = arith.mulf %x, %s : tensor<96xf64>
  %0 = math.atan %y : tensor<96xf64>
  return %0 : tensor<96xf64>
}
// EQUAL: asin_f64: pointwise equal
func.func private @asin_f64(%x: tensor<96xf64>, %o: tensor<96xf64>) -> tensor<96xf64> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf64>
  %y = arith.mulf %x, %x : tensor<96xf64>
  %0 = math.asin %y : tensor<96xf64>
  return %0 : tensor<96xf64>
}
// EQUAL: acos_f64: pointwise equal
func.func private @acos_f64(%x: tensor<96xf64>, %o: tensor<96xf64>) -> tensor<96xf64> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf64>
  %y = arith.mulf %x, %x : tensor<96xf64>
  %0 = math.acos %y : tensor<96xf64>
  return %0 : tensor<96xf64>
}
// EQUAL: cbrt_f64: pointwise equal
func.func private @cbrt_f64(%x: tensor<96xf64>, %o: tensor<96xf64>) -> tensor<96xf64> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf64>
  %y = arith.mulf %x, %s : tensor<96xf64>
  %0 = math.cbrt %y : tensor<96xf64>
  return %0 : tensor<96xf64>
}
// EQUAL: rsqrt_f64: pointwise equal
func.func private @rsqrt_f64(%x: tensor<96xf64>, %o: tensor<96xf64>) -> tensor<96xf64> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf64>
  %y = arith.mulf %x, %s : tensor<96xf64>
  %0 = math.rsqrt %y : tensor<96xf64>
  return %0 : tensor<96xf64>
}
// EQUAL: erf_f64: pointwise equal
func.func private @erf_f64(%x: tensor<96xf64>, %o: tensor<96xf64>) -> tensor<96xf64> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf64>
  %y = arith.mulf %x, %s : tensor<96xf64>
  %0 = math.erf %y : tensor<96xf64>
  return %0 : tensor<96xf64>
}
// EQUAL: erfc_f64: pointwise equal
func.func private @erfc_f64(%x: tensor<96xf64>, %o: tensor<96xf64>) -> tensor<96xf64> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf64>
  %y = arith.mulf %x, %s : tensor<96xf64>
  %0 = math.erfc %y : tensor<96xf64>
  return %0 : tensor<96xf64>
}
// EQUAL: sqrt_f64: pointwise equal
func.func private @sqrt_f64(%x: tensor<96xf64>, %o: tensor<96xf64>) -> tensor<96xf64> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf64>
  %y = arith.mulf %x, %s : tensor<96xf64>
  %0 = math.sqrt %y : tensor<96xf64>
  return %0 : tensor<96xf64>
}
// EQUAL: floor_f64: pointwise equal
func.func private @floor_f64(%x: tensor<96xf64>, %o: tensor<96xf64>) -> tensor<96xf64> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf64>
  %y = arith.mulf %x, %s : tensor<96xf64>
  %0 = math.floor %y : tensor<96xf64>
  return %0 : tensor<96xf64>
}
// EQUAL: ceil_f64: pointwise equal
func.func private @ceil_f64(%x: tensor<96xf64>, %o: tensor<96xf64>) -> tensor<96xf64> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf64>
  %y = arith.mulf %x, %s : tensor<96xf64>
  %0 = math.ceil %y : tensor<96xf64>
  return %0 : tensor<96xf64>
}
// EQUAL: round_f64: pointwise equal
func.func private @round_f64(%x: tensor<96xf64>, %o: tensor<96xf64>) -> tensor<96xf64> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf64>
  %y = arith.mulf %x, %s : tensor<96xf64>
  %0 = math.round %y : tensor<96xf64>
  return %0 : tensor<96xf64>
}
// EQUAL: roundeven_f64: pointwise equal
func.func private @roundeven_f64(%x: tensor<96xf64>, %o: tensor<96xf64>) -> tensor<96xf64> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf64>
  %y = arith.mulf %x, %s : tensor<96xf64>
  %0 = math.roundeven %y : tensor<96xf64>
  return %0 : tensor<96xf64>
}
// EQUAL: trunc_f64: pointwise equal
func.func private @trunc_f64(%x: tensor<96xf64>, %o: tensor<96xf64>) -> tensor<96xf64> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf64>
  %y = arith.mulf %x, %s : tensor<96xf64>
  %0 = math.trunc %y : tensor<96xf64>
  return %0 : tensor<96xf64>
}
// EQUAL: absf_f64: pointwise equal
func.func private @absf_f64(%x: tensor<96xf64>, %o: tensor<96xf64>) -> tensor<96xf64> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf64>
  %y = arith.mulf %x, %s : tensor<96xf64>
  %0 = math.absf %y : tensor<96xf64>
  return %0 : tensor<96xf64>
}
// EQUAL: powf_f64: pointwise equal
func.func private @powf_f64(%x: tensor<96xf64>, %z: tensor<96xf64>, %o: tensor<96xf64>) -> tensor<96xf64> attributes {kernel.reads = 2 : i64} {
  %y = math.absf %x : tensor<96xf64>
  %0 = math.powf %y, %z : tensor<96xf64>
  return %0 : tensor<96xf64>
}
// EQUAL: atan2_f64: pointwise equal
func.func private @atan2_f64(%x: tensor<96xf64>, %z: tensor<96xf64>, %o: tensor<96xf64>) -> tensor<96xf64> attributes {kernel.reads = 2 : i64} {
  %y = math.absf %x : tensor<96xf64>
  %0 = math.atan2 %y, %z : tensor<96xf64>
  return %0 : tensor<96xf64>
}
// EQUAL: exp_f32: pointwise equal
func.func private @exp_f32(%x: tensor<96xf32>, %o: tensor<96xf32>) -> tensor<96xf32> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf32>
  %y = arith.mulf %x, %s : tensor<96xf32>
  %0 = math.exp %y : tensor<96xf32>
  return %0 : tensor<96xf32>
}
// EQUAL: exp2_f32: pointwise equal
func.func private @exp2_f32(%x: tensor<96xf32>, %o: tensor<96xf32>) -> tensor<96xf32> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf32>
  %y = arith.mulf %x, %s : tensor<96xf32>
  %0 = math.exp2 %y : tensor<96xf32>
  return %0 : tensor<96xf32>
}
// EQUAL: expm1_f32: pointwise equal
func.func private @expm1_f32(%x: tensor<96xf32>, %o: tensor<96xf32>) -> tensor<96xf32> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf32>
  %y = arith.mulf %x, %s : tensor<96xf32>
  %0 = math.expm1 %y : tensor<96xf32>
  return %0 : tensor<96xf32>
}
// EQUAL: log_f32: pointwise equal
func.func private @log_f32(%x: tensor<96xf32>, %o: tensor<96xf32>) -> tensor<96xf32> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf32>
  %y = arith.mulf %x, %s : tensor<96xf32>
  %0 = math.log %y : tensor<96xf32>
  return %0 : tensor<96xf32>
}
// EQUAL: log2_f32: pointwise equal
func.func private @log2_f32(%x: tensor<96xf32>, %o: tensor<96xf32>) -> tensor<96xf32> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf32>
  %y = arith.mulf %x, %s : tensor<96xf32>
  %0 = math.log2 %y : tensor<96xf32>
  return %0 : tensor<96xf32>
}
// EQUAL: log10_f32: pointwise equal
func.func private @log10_f32(%x: tensor<96xf32>, %o: tensor<96xf32>) -> tensor<96xf32> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf32>
  %y = arith.mulf %x, %s : tensor<96xf32>
  %0 = math.log10 %y : tensor<96xf32>
  return %0 : tensor<96xf32>
}
// EQUAL: log1p_f32: pointwise equal
func.func private @log1p_f32(%x: tensor<96xf32>, %o: tensor<96xf32>) -> tensor<96xf32> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf32>
  %y = arith.mulf %x, %s : tensor<96xf32>
  %0 = math.log1p %y : tensor<96xf32>
  return %0 : tensor<96xf32>
}
// EQUAL: tanh_f32: pointwise equal
func.func private @tanh_f32(%x: tensor<96xf32>, %o: tensor<96xf32>) -> tensor<96xf32> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf32>
  %y = arith.mulf %x, %s : tensor<96xf32>
  %0 = math.tanh %y : tensor<96xf32>
  return %0 : tensor<96xf32>
}
// EQUAL: sinh_f32: pointwise equal
func.func private @sinh_f32(%x: tensor<96xf32>, %o: tensor<96xf32>) -> tensor<96xf32> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf32>
  %y = arith.mulf %x, %s : tensor<96xf32>
  %0 = math.sinh %y : tensor<96xf32>
  return %0 : tensor<96xf32>
}
// EQUAL: cosh_f32: pointwise equal
func.func private @cosh_f32(%x: tensor<96xf32>, %o: tensor<96xf32>) -> tensor<96xf32> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf32>
  %y = arith.mulf %x, %s : tensor<96xf32>
  %0 = math.cosh %y : tensor<96xf32>
  return %0 : tensor<96xf32>
}
// EQUAL: asinh_f32: pointwise equal
func.func private @asinh_f32(%x: tensor<96xf32>, %o: tensor<96xf32>) -> tensor<96xf32> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf32>
  %y = arith.mulf %x, %s : tensor<96xf32>
  %0 = math.asinh %y : tensor<96xf32>
  return %0 : tensor<96xf32>
}
// EQUAL: acosh_f32: pointwise equal
func.func private @acosh_f32(%x: tensor<96xf32>, %o: tensor<96xf32>) -> tensor<96xf32> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf32>
  %y = arith.mulf %x, %s : tensor<96xf32>
  %0 = math.acosh %y : tensor<96xf32>
  return %0 : tensor<96xf32>
}
// EQUAL: atanh_f32: pointwise equal
func.func private @atanh_f32(%x: tensor<96xf32>, %o: tensor<96xf32>) -> tensor<96xf32> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf32>
  %y = arith.mulf %x, %x : tensor<96xf32>
  %0 = math.atanh %y : tensor<96xf32>
  return %0 : tensor<96xf32>
}
// EQUAL: sin_f32: pointwise equal
func.func private @sin_f32(%x: tensor<96xf32>, %o: tensor<96xf32>) -> tensor<96xf32> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf32>
  %y = arith.mulf %x, %s : tensor<96xf32>
  %0 = math.sin %y : tensor<96xf32>
  return %0 : tensor<96xf32>
}
// EQUAL: cos_f32: pointwise equal
func.func private @cos_f32(%x: tensor<96xf32>, %o: tensor<96xf32>) -> tensor<96xf32> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf32>
  %y = arith.mulf %x, %s : tensor<96xf32>
  %0 = math.cos %y : tensor<96xf32>
  return %0 : tensor<96xf32>
}
// EQUAL: tan_f32: pointwise equal
func.func private @tan_f32(%x: tensor<96xf32>, %o: tensor<96xf32>) -> tensor<96xf32> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf32>
  %y = arith.mulf %x, %s : tensor<96xf32>
  %0 = math.tan %y : tensor<96xf32>
  return %0 : tensor<96xf32>
}
// EQUAL: atan_f32: pointwise equal
func.func private @atan_f32(%x: tensor<96xf32>, %o: tensor<96xf32>) -> tensor<96xf32> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf32>
  %y = arith.mulf %x, %s : tensor<96xf32>
  %0 = math.atan %y : tensor<96xf32>
  return %0 : tensor<96xf32>
}
// EQUAL: asin_f32: pointwise equal
func.func private @asin_f32(%x: tensor<96xf32>, %o: tensor<96xf32>) -> tensor<96xf32> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf32>
  %y = arith.mulf %x, %x : tensor<96xf32>
  %0 = math.asin %y : tensor<96xf32>
  return %0 : tensor<96xf32>
}
// EQUAL: acos_f32: pointwise equal
func.func private @acos_f32(%x: tensor<96xf32>, %o: tensor<96xf32>) -> tensor<96xf32> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf32>
  %y = arith.mulf %x, %x : tensor<96xf32>
  %0 = math.acos %y : tensor<96xf32>
  return %0 : tensor<96xf32>
}
// EQUAL: cbrt_f32: pointwise equal
func.func private @cbrt_f32(%x: tensor<96xf32>, %o: tensor<96xf32>) -> tensor<96xf32> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf32>
  %y = arith.mulf %x, %s : tensor<96xf32>
  %0 = math.cbrt %y : tensor<96xf32>
  return %0 : tensor<96xf32>
}
// EQUAL: rsqrt_f32: pointwise equal
func.func private @rsqrt_f32(%x: tensor<96xf32>, %o: tensor<96xf32>) -> tensor<96xf32> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf32>
  %y = arith.mulf %x, %s : tensor<96xf32>
  %0 = math.rsqrt %y : tensor<96xf32>
  return %0 : tensor<96xf32>
}
// EQUAL: erf_f32: pointwise equal
func.func private @erf_f32(%x: tensor<96xf32>, %o: tensor<96xf32>) -> tensor<96xf32> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf32>
  %y = arith.mulf %x, %s : tensor<96xf32>
  %0 = math.erf %y : tensor<96xf32>
  return %0 : tensor<96xf32>
}
// EQUAL: erfc_f32: pointwise equal
func.func private @erfc_f32(%x: tensor<96xf32>, %o: tensor<96xf32>) -> tensor<96xf32> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf32>
  %y = arith.mulf %x, %s : tensor<96xf32>
  %0 = math.erfc %y : tensor<96xf32>
  return %0 : tensor<96xf32>
}
// EQUAL: sqrt_f32: pointwise equal
func.func private @sqrt_f32(%x: tensor<96xf32>, %o: tensor<96xf32>) -> tensor<96xf32> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf32>
  %y = arith.mulf %x, %s : tensor<96xf32>
  %0 = math.sqrt %y : tensor<96xf32>
  return %0 : tensor<96xf32>
}
// EQUAL: floor_f32: pointwise equal
func.func private @floor_f32(%x: tensor<96xf32>, %o: tensor<96xf32>) -> tensor<96xf32> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf32>
  %y = arith.mulf %x, %s : tensor<96xf32>
  %0 = math.floor %y : tensor<96xf32>
  return %0 : tensor<96xf32>
}
// EQUAL: ceil_f32: pointwise equal
func.func private @ceil_f32(%x: tensor<96xf32>, %o: tensor<96xf32>) -> tensor<96xf32> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf32>
  %y = arith.mulf %x, %s : tensor<96xf32>
  %0 = math.ceil %y : tensor<96xf32>
  return %0 : tensor<96xf32>
}
// EQUAL: round_f32: pointwise equal
func.func private @round_f32(%x: tensor<96xf32>, %o: tensor<96xf32>) -> tensor<96xf32> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf32>
  %y = arith.mulf %x, %s : tensor<96xf32>
  %0 = math.round %y : tensor<96xf32>
  return %0 : tensor<96xf32>
}
// EQUAL: roundeven_f32: pointwise equal
func.func private @roundeven_f32(%x: tensor<96xf32>, %o: tensor<96xf32>) -> tensor<96xf32> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf32>
  %y = arith.mulf %x, %s : tensor<96xf32>
  %0 = math.roundeven %y : tensor<96xf32>
  return %0 : tensor<96xf32>
}
// EQUAL: trunc_f32: pointwise equal
func.func private @trunc_f32(%x: tensor<96xf32>, %o: tensor<96xf32>) -> tensor<96xf32> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf32>
  %y = arith.mulf %x, %s : tensor<96xf32>
  %0 = math.trunc %y : tensor<96xf32>
  return %0 : tensor<96xf32>
}
// EQUAL: absf_f32: pointwise equal
func.func private @absf_f32(%x: tensor<96xf32>, %o: tensor<96xf32>) -> tensor<96xf32> attributes {kernel.reads = 1 : i64} {
  %s = arith.constant dense<4.0> : tensor<96xf32>
  %y = arith.mulf %x, %s : tensor<96xf32>
  %0 = math.absf %y : tensor<96xf32>
  return %0 : tensor<96xf32>
}
// EQUAL: powf_f32: pointwise equal
func.func private @powf_f32(%x: tensor<96xf32>, %z: tensor<96xf32>, %o: tensor<96xf32>) -> tensor<96xf32> attributes {kernel.reads = 2 : i64} {
  %y = math.absf %x : tensor<96xf32>
  %0 = math.powf %y, %z : tensor<96xf32>
  return %0 : tensor<96xf32>
}
// EQUAL: atan2_f32: pointwise equal
func.func private @atan2_f32(%x: tensor<96xf32>, %z: tensor<96xf32>, %o: tensor<96xf32>) -> tensor<96xf32> attributes {kernel.reads = 2 : i64} {
  %y = math.absf %x : tensor<96xf32>
  %0 = math.atan2 %y, %z : tensor<96xf32>
  return %0 : tensor<96xf32>
}
