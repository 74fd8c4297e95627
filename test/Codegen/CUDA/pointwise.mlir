// A thread handles 16 bytes of every contiguous operand: one access each, without duplicates.
// RUN: tessera-opt %s --tessera-compile-gpu-kernels="arch=compute_80 print-ptx" -o /dev/null | FileCheck %s
// RUN: tessera-opt %s --tessera-check-gpu-kernels -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %s --tessera-check-gpu-kernels=wide-indices -o /dev/null | FileCheck %s --check-prefix=EQUAL

// CHECK-LABEL: tanh_sum: launches 1, workspace 0, bytes 96000 of 96000
// CHECK-NEXT: pointwise: grid 8, block 256, shared 0, reads 64000, writes 32000
// CHECK-COUNT-2: ld.global{{(.nc)?}}.v4.b32
// CHECK-NOT: ld.global
// CHECK: st.global.v4.b32
// CHECK-NOT: st.global
// CHECK-LABEL: odd_bias: launches 1
// The last element does not fill a vector.
// CHECK: ld.global{{(.nc)?}}.v4.b32
// EQUAL: tanh_sum: pointwise equal
func.func private @tanh_sum(%x: tensor<1000x8xf32>, %y: tensor<1000x8xf32>, %o: tensor<1000x8xf32>)
    -> tensor<1000x8xf32> attributes {kernel.reads = 2 : i64} {
  %0 = linalg.add ins(%x, %y : tensor<1000x8xf32>, tensor<1000x8xf32>) outs(%o : tensor<1000x8xf32>)
      -> tensor<1000x8xf32>
  %1 = math.tanh %0 : tensor<1000x8xf32>
  return %1 : tensor<1000x8xf32>
}

// EQUAL: odd_bias: pointwise equal
func.func private @odd_bias(%x: tensor<33x51xbf16>, %y: tensor<51xbf16>, %o: tensor<33x51xbf16>)
    -> tensor<33x51xbf16> attributes {kernel.reads = 2 : i64} {
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : tensor<33x51xbf16>, tensor<51xbf16>) outs(%o : tensor<33x51xbf16>) {
  ^bb0(%a: bf16, %b: bf16, %c: bf16):
    %i = linalg.index 1 : index
    %j = arith.index_cast %i : index to i32
    %f = arith.sitofp %j : i32 to bf16
    %s = arith.addf %a, %b : bf16
    %t = arith.addf %s, %f : bf16
    linalg.yield %t : bf16
  } -> tensor<33x51xbf16>
  return %1 : tensor<33x51xbf16>
}

// EQUAL: gather: pointwise equal
func.func private @gather(%x: tensor<5x64xf32>, %i: tensor<7x1xindex>, %o: tensor<7x64xf32>)
    -> tensor<7x64xf32> attributes {kernel.reads = 2 : i64} {
  %0 = tensor.gather %x[%i] gather_dims([0]) : (tensor<5x64xf32>, tensor<7x1xindex>) -> tensor<7x64xf32>
  return %0 : tensor<7x64xf32>
}
