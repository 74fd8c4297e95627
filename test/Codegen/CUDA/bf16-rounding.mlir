// f32 is rounded to bf16 by an instruction for two elements, in every scheme; no integer arithmetic is left.
// RUN: tessera-opt %s --tessera-compile-gpu-kernels="arch=compute_80 print-ptx" -o /dev/null | FileCheck %s --implicit-check-not=32767 --implicit-check-not=2143289344
// RUN: tessera-opt %s --tessera-check-gpu-kernels -o /dev/null | FileCheck %s --check-prefix=EQUAL

// CHECK-LABEL: narrow: launches 1
// CHECK-COUNT-4: cvt.rn.bf16x2.f32
// CHECK-NOT: cvt
// CHECK: st.global.v4.b32
// EQUAL: narrow: pointwise equal
func.func private @narrow(%x: tensor<4096xf32>, %out: tensor<4096xbf16>) -> tensor<4096xbf16>
    attributes {kernel.reads = 1 : i64} {
  %y = arith.truncf %x : tensor<4096xf32> to tensor<4096xbf16>
  return %y : tensor<4096xbf16>
}

// A sum and a product are one instruction each for two elements, which rounds: no element becomes f32.
// CHECK-LABEL: chain: launches 1
// CHECK-COUNT-8: fma.rn.bf16x2
// CHECK-NOT: cvt
// CHECK-NOT: fma
// CHECK: st.global.v4.b32
// EQUAL: chain: pointwise equal
func.func private @chain(%x: tensor<4096xbf16>, %z: tensor<4096xbf16>, %out: tensor<4096xbf16>) -> tensor<4096xbf16>
    attributes {kernel.reads = 2 : i64} {
  %m = arith.mulf %x, %z : tensor<4096xbf16>
  %y = arith.addf %m, %x : tensor<4096xbf16>
  return %y : tensor<4096xbf16>
}

// An element alone, and f64 through f32 rounded to odd.
// CHECK-LABEL: alone: launches 1
// CHECK: cvt.rn.bf16x2.f32
// EQUAL: alone: pointwise equal
func.func private @alone(%x: tensor<7xf32>, %out: tensor<7xbf16>) -> tensor<7xbf16>
    attributes {kernel.reads = 1 : i64} {
  %y = arith.truncf %x : tensor<7xf32> to tensor<7xbf16>
  return %y : tensor<7xbf16>
}
// CHECK-LABEL: wide: launches 1
// CHECK: cvt.rn.f32.f64
// CHECK: cvt.rn.bf16x2.f32
// EQUAL: wide: pointwise equal
func.func private @wide(%x: tensor<96xf64>, %out: tensor<96xbf16>) -> tensor<96xbf16>
    attributes {kernel.reads = 1 : i64} {
  %y = arith.truncf %x : tensor<96xf64> to tensor<96xbf16>
  return %y : tensor<96xbf16>
}

// Sums of rows, in f32, and what follows them.
// CHECK-LABEL: rows: launches 1
// CHECK: cvt.rn.bf16x2.f32
// EQUAL: rows: rows equal
func.func private @rows(%x: tensor<64x512xbf16>, %out: tensor<64x512xbf16>) -> tensor<64x512xbf16>
    attributes {kernel.reads = 1 : i64} {
  %y = linalg.softmax dimension(1) ins(%x : tensor<64x512xbf16>) outs(%out : tensor<64x512xbf16>) -> tensor<64x512xbf16>
  return %y : tensor<64x512xbf16>
}
