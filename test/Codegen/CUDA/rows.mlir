// Row-wise ops are one launch: a row is read once, kept in registers, and written once.
// RUN: tessera-opt %s --tessera-compile-gpu-kernels="arch=compute_80 print-ptx" -o /dev/null | FileCheck %s
// RUN: tessera-opt %s --tessera-check-gpu-kernels -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %s --tessera-check-gpu-kernels=wide-indices -o /dev/null | FileCheck %s --check-prefix=EQUAL

// A team is a block: two reductions through shuffles and shared memory.
// CHECK-LABEL: softmax: launches 1, workspace 0, bytes 512000 of 512000
// CHECK-NEXT: rows: grid 64, block 128
// CHECK: ld.global{{(.nc)?}}.v4.b32
// CHECK: shfl.sync.bfly.b32
// CHECK: bar.sync
// CHECK: st.global.v4.b32
// EQUAL: softmax: rows equal
func.func private @softmax(%x: tensor<64x1000xf32>, %o: tensor<64x1000xf32>) -> tensor<64x1000xf32>
    attributes {kernel.reads = 1 : i64} {
  %0 = linalg.softmax dimension(1) ins(%x : tensor<64x1000xf32>) outs(%o : tensor<64x1000xf32>) -> tensor<64x1000xf32>
  return %0 : tensor<64x1000xf32>
}

// Several teams share a warp, and the last block has superfluous ones.
// CHECK-LABEL: short_softmax: launches 1, workspace 0, bytes 5280 of 5280
// CHECK-NOT: bar.sync
// EQUAL: short_softmax: rows equal
func.func private @short_softmax(%x: tensor<33x20xf32>, %o: tensor<33x20xf32>) -> tensor<33x20xf32>
    attributes {kernel.reads = 1 : i64} {
  %0 = linalg.softmax dimension(1) ins(%x : tensor<33x20xf32>) outs(%o : tensor<33x20xf32>) -> tensor<33x20xf32>
  return %0 : tensor<33x20xf32>
}

// Rows are not aligned: their chunks are, and only a row's first and last elements are accessed one by one.
// CHECK-LABEL: odd_softmax: launches 1, workspace 0, bytes 5227520 of 5227520
// CHECK: ld.global{{(.nc)?}}.v4.b32
// CHECK: st.global.v4.b32
// EQUAL: odd_softmax: rows equal
func.func private @odd_softmax(%x: tensor<640x1021xf32>, %o: tensor<640x1021xf32>) -> tensor<640x1021xf32>
    attributes {kernel.reads = 1 : i64} {
  %0 = linalg.softmax dimension(1) ins(%x : tensor<640x1021xf32>) outs(%o : tensor<640x1021xf32>) -> tensor<640x1021xf32>
  return %0 : tensor<640x1021xf32>
}

// EQUAL: odd_index: rows equal
func.func private @odd_index(%x: tensor<33x77xi32>, %y: tensor<77xi32>, %o: tensor<33xi32>) -> tensor<33xi32>
    attributes {kernel.reads = 2 : i64} {
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>],
                       iterator_types = ["parallel", "reduction"]}
      ins(%x, %y : tensor<33x77xi32>, tensor<77xi32>) outs(%o : tensor<33xi32>) {
  ^bb0(%a: i32, %b: i32, %c: i32):
    %n = linalg.index 1 : index
    %m = arith.index_cast %n : index to i32
    %p = arith.muli %a, %m : i32
    %q = arith.addi %p, %b : i32
    %s = arith.addi %c, %q : i32
    linalg.yield %s : i32
  } -> tensor<33xi32>
  return %0 : tensor<33xi32>
}

// A row that exceeds the registers is kept in shared memory, where each thread reads its own elements.
// CHECK-LABEL: shared_softmax: launches 1, workspace 0, bytes 6144000 of 6144000
// CHECK-NEXT: rows: grid 32, block 1024, shared 98
// EQUAL: shared_softmax: rows equal
func.func private @shared_softmax(%x: tensor<32x48000xbf16>, %o: tensor<32x48000xbf16>) -> tensor<32x48000xbf16>
    attributes {kernel.reads = 1 : i64} {
  %m = tensor.empty() : tensor<32xbf16>
  %low = arith.constant 0xFF80 : bf16
  %f = linalg.fill ins(%low : bf16) outs(%m : tensor<32xbf16>) -> tensor<32xbf16>
  %most = linalg.reduce { arith.maximumf } ins(%x : tensor<32x48000xbf16>) outs(%f : tensor<32xbf16>) dimensions = [1]
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x, %most : tensor<32x48000xbf16>, tensor<32xbf16>) outs(%o : tensor<32x48000xbf16>) {
  ^bb0(%a: bf16, %b: bf16, %c: bf16):
    %d = arith.subf %a, %b : bf16
    linalg.yield %d : bf16
  } -> tensor<32x48000xbf16>
  return %0 : tensor<32x48000xbf16>
}

// Longer rows use loops: one read for the maximum and the sum, and one for the result. The
// exponentials are recomputed rather than written and read.
// CHECK-LABEL: long_softmax: launches 1, workspace 0, bytes 38401152 of 25600768
// EQUAL: long_softmax: rows equal
func.func private @long_softmax(%x: tensor<32x100003xf32>, %o: tensor<32x100003xf32>) -> tensor<32x100003xf32>
    attributes {kernel.reads = 1 : i64} {
  %0 = linalg.softmax dimension(1) ins(%x : tensor<32x100003xf32>) outs(%o : tensor<32x100003xf32>) -> tensor<32x100003xf32>
  return %0 : tensor<32x100003xf32>
}

// EQUAL: row_sum_f64: rows equal
func.func private @row_sum_f64(%x: tensor<64x1021xf64>, %o: tensor<64xf64>) -> tensor<64xf64>
    attributes {kernel.reads = 1 : i64} {
  %0 = linalg.reduce ins(%x : tensor<64x1021xf64>) outs(%o : tensor<64xf64>) dimensions = [1]
    (%a: f64, %b: f64) { %s = arith.addf %a, %b : f64
      linalg.yield %s : f64 }
  return %0 : tensor<64xf64>
}

// EQUAL: row_max_i8: rows equal
func.func private @row_max_i8(%x: tensor<64x48xi8>, %o: tensor<64xi8>) -> tensor<64xi8>
    attributes {kernel.reads = 1 : i64} {
  %0 = linalg.reduce ins(%x : tensor<64x48xi8>) outs(%o : tensor<64xi8>) dimensions = [1]
    (%a: i8, %b: i8) { %s = arith.maxsi %a, %b : i8
      linalg.yield %s : i8 }
  return %0 : tensor<64xi8>
}
