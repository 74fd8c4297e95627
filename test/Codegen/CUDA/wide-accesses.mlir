// Contiguous operands use 128-bit accesses for any element type and any index of a row.
// RUN: tessera-opt %s --tessera-compile-gpu-kernels="arch=compute_80 print-ptx print-accesses" -o /dev/null | FileCheck %s
// RUN: tessera-opt %s --tessera-check-gpu-kernels -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %s --tessera-check-gpu-kernels=wide-indices -o /dev/null | FileCheck %s --check-prefix=EQUAL

// Rows of a table: one index per row, four elements per access.
// CHECK-LABEL: embedding: launches 1
// CHECK: reads argument 1 by 32 bits: one computed index
// CHECK-NOT: argument 0 by
// CHECK: ld.global{{(.nc)?}}.{{b|s|u}}32
// CHECK: ld.global{{(.nc)?}}.v4.b32
// CHECK-NOT: ld.global
// CHECK: st.global.v4.b32
// CHECK-LABEL: embedding_f16: launches 1
// CHECK: ld.global{{(.nc)?}}.v4.b32
// CHECK: st.global.v4.b32
// EQUAL: embedding: pointwise equal
func.func private @embedding(%x: tensor<500x64xf32>, %i: tensor<70x1xi32>, %o: tensor<70x64xf32>)
    -> tensor<70x64xf32> attributes {kernel.reads = 2 : i64} {
  %0 = tensor.gather %x[%i] gather_dims([0]) : (tensor<500x64xf32>, tensor<70x1xi32>) -> tensor<70x64xf32>
  return %0 : tensor<70x64xf32>
}

// EQUAL: embedding_f16: pointwise equal
func.func private @embedding_f16(%x: tensor<500x64xf16>, %i: tensor<70x1xi32>, %o: tensor<70x64xf16>)
    -> tensor<70x64xf16> attributes {kernel.reads = 2 : i64} {
  %0 = tensor.gather %x[%i] gather_dims([0]) : (tensor<500x64xf16>, tensor<70x1xi32>) -> tensor<70x64xf16>
  return %0 : tensor<70x64xf16>
}

// The row length is not a multiple of a vector: elements are gathered one by one, and the report says so.
// CHECK-LABEL: embedding_odd: launches 1
// CHECK: reads argument 0 by 32 bits: computed indices
// EQUAL: embedding_odd: pointwise equal
func.func private @embedding_odd(%x: tensor<500x51xf32>, %i: tensor<70x1xi32>, %o: tensor<70x51xf32>)
    -> tensor<70x51xf32> attributes {kernel.reads = 2 : i64} {
  %0 = tensor.gather %x[%i] gather_dims([0]) : (tensor<500x51xf32>, tensor<70x1xi32>) -> tensor<70x51xf32>
  return %0 : tensor<70x51xf32>
}

// The narrowest operand decides: 16 flags, and four times four numbers.
// CHECK-LABEL: masked: launches 1
// CHECK-NOT: bits:
// CHECK-COUNT-5: ld.global{{(.nc)?}}.v4.b32
// CHECK-NOT: ld.global
// CHECK-COUNT-4: st.global.v4.b32
// EQUAL: masked: pointwise equal
func.func private @masked(%x: tensor<1000x64xf32>, %m: tensor<1000x64xi1>, %o: tensor<1000x64xf32>)
    -> tensor<1000x64xf32> attributes {kernel.reads = 2 : i64} {
  %z = arith.constant dense<0.0> : tensor<1000x64xf32>
  %1 = arith.select %m, %x, %z : tensor<1000x64xi1>, tensor<1000x64xf32>
  return %1 : tensor<1000x64xf32>
}

// A layer of stacked weights: its offset is known only at run time, but is a multiple of a row.
// CHECK-LABEL: layer: launches 1
// CHECK-NOT: argument 0 by
// CHECK: ld.global{{(.nc)?}}.v4.b32
// EQUAL: layer: pointwise equal
func.func private @layer(%x: tensor<2x6x64xf32>, %i: tensor<i32>, %o: tensor<6x64xf32>)
    -> tensor<6x64xf32> attributes {kernel.reads = 2 : i64} {
  %n = tensor.extract %i[] : tensor<i32>
  %at = arith.index_cast %n : i32 to index
  %w = tensor.extract_slice %x[%at, 0, 0] [1, 6, 64] [1, 1, 1] : tensor<2x6x64xf32> to tensor<6x64xf32>
  %0 = linalg.exp ins(%w : tensor<6x64xf32>) outs(%o : tensor<6x64xf32>) -> tensor<6x64xf32>
  return %0 : tensor<6x64xf32>
}

// A part of a table: rows of other devices are zero. The look-up is always executed, within the table.
// CHECK-LABEL: part: launches 1
// CHECK-NEXT: pointwise
// CHECK-NOT: argument 0 by
// CHECK: ld.global{{(.nc)?}}.v4.b32
// CHECK: st.global.v4.b32
// EQUAL: part: pointwise equal
func.func private @part(%x: tensor<500x64xf32>, %i: tensor<70xi32>, %o: tensor<70x64xf32>)
    -> tensor<70x64xf32> attributes {kernel.reads = 2 : i64} {
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%i : tensor<70xi32>) outs(%o : tensor<70x64xf32>) {
  ^bb0(%n: i32, %b: f32):
    %j = linalg.index 1 : index
    %at = arith.index_cast %n : i32 to index
    %c1 = arith.constant 1 : index
    %mine = arith.subi %at, %c1 : index
    %zero = arith.constant 0.0 : f32
    %c500 = arith.constant 500 : index
    %there = arith.cmpi ult, %mine, %c500 : index
    %r = scf.if %there -> f32 {
      %e = tensor.extract %x[%mine, %j] : tensor<500x64xf32>
      scf.yield %e : f32
    } else {
      scf.yield %zero : f32
    }
    linalg.yield %r : f32
  } -> tensor<70x64xf32>
  return %0 : tensor<70x64xf32>
}
