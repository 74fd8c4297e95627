// Reductions of a few long rows or columns use the whole GPU, in two stages, and move the bytes of their operand. No
// thread adds up many parts alone.
// RUN: split-file %s %t
// RUN: tessera-opt %t/large.mlir --tessera-compile-gpu-kernels=arch=compute_80 -o /dev/null | FileCheck %s
// RUN: tessera-opt %t/small.mlir --tessera-check-gpu-kernels -o /dev/null | FileCheck %s --check-prefix=EQUAL

// CHECK: one: launches 2, workspace 128000, bytes 400256004 of 400000004
// CHECK-NEXT: rows: grid 32000,
// CHECK-NEXT: rows: grid 1, block 1024,
// CHECK: eight: launches 2, workspace 128000, bytes 320256032 of 320000032
// CHECK-NEXT: rows: grid 32000,
// CHECK-NEXT: rows: grid 8, block 512,
// The length of a row is a prime: 4,096 blocks add up all elements but the last 147 of a row.
// CHECK: prime: launches 2, workspace 16384, bytes 320033408 of 320000640
// CHECK-NEXT: rows: grid 4096,
// CHECK-NEXT: rows: grid 8,
// 1,000 parts of 1,000 rows: 32 threads share four columns of a part, and then a column.
// CHECK: columns: launches 2, workspace 64000, bytes 64128064 of 64000064
// CHECK-NEXT: plain: grid 500, block 256,
// CHECK-NEXT: plain: grid 2, block 256,

// EQUAL: eight: rows rows equal
// EQUAL: prime: rows rows equal
// EQUAL: columns: plain plain equal

//--- large.mlir
func.func private @one(%x: tensor<1x100000000xf32>, %o: tensor<1xf32>) -> tensor<1xf32> attributes {kernel.reads = 1 : i64} {
  %start = arith.constant 0.0 : f32
  %fill = linalg.fill ins(%start : f32) outs(%o : tensor<1xf32>) -> tensor<1xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<1x100000000xf32>) outs(%fill : tensor<1xf32>) {
  ^bb0(%element: f32, %sum: f32):
    %next = arith.addf %element, %sum : f32
    linalg.yield %next : f32
  } -> tensor<1xf32>
  return %0 : tensor<1xf32>
}
func.func private @eight(%x: tensor<8x10000000xf32>, %o: tensor<8xf32>) -> tensor<8xf32> attributes {kernel.reads = 1 : i64} {
  %start = arith.constant 0.0 : f32
  %fill = linalg.fill ins(%start : f32) outs(%o : tensor<8xf32>) -> tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x10000000xf32>) outs(%fill : tensor<8xf32>) {
  ^bb0(%element: f32, %sum: f32):
    %next = arith.addf %element, %sum : f32
    linalg.yield %next : f32
  } -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @prime(%x: tensor<8x10000019xf32>, %o: tensor<8xf32>) -> tensor<8xf32> attributes {kernel.reads = 1 : i64} {
  %start = arith.constant 0.0 : f32
  %fill = linalg.fill ins(%start : f32) outs(%o : tensor<8xf32>) -> tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x10000019xf32>) outs(%fill : tensor<8xf32>) {
  ^bb0(%element: f32, %sum: f32):
    %next = arith.addf %element, %sum : f32
    linalg.yield %next : f32
  } -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @columns(%x: tensor<1000000x16xf32>, %o: tensor<16xf32>) -> tensor<16xf32> attributes {kernel.reads = 1 : i64} {
  %start = arith.constant 0.0 : f32
  %fill = linalg.fill ins(%start : f32) outs(%o : tensor<16xf32>) -> tensor<16xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<1000000x16xf32>) outs(%fill : tensor<16xf32>) {
  ^bb0(%element: f32, %sum: f32):
    %next = arith.addf %element, %sum : f32
    linalg.yield %next : f32
  } -> tensor<16xf32>
  return %0 : tensor<16xf32>
}

//--- small.mlir
func.func private @eight(%x: tensor<8x32768xf32>, %o: tensor<8xf32>) -> tensor<8xf32> attributes {kernel.reads = 1 : i64} {
  %start = arith.constant 0xFF800000 : f32
  %fill = linalg.fill ins(%start : f32) outs(%o : tensor<8xf32>) -> tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x32768xf32>) outs(%fill : tensor<8xf32>) {
  ^bb0(%element: f32, %sum: f32):
    %next = arith.maximumf %element, %sum : f32
    linalg.yield %next : f32
  } -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @prime(%x: tensor<3x1400017xf32>, %o: tensor<3xf32>) -> tensor<3xf32> attributes {kernel.reads = 1 : i64} {
  %start = arith.constant 0.0 : f32
  %fill = linalg.fill ins(%start : f32) outs(%o : tensor<3xf32>) -> tensor<3xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<3x1400017xf32>) outs(%fill : tensor<3xf32>) {
  ^bb0(%element: f32, %sum: f32):
    %next = arith.addf %element, %sum : f32
    linalg.yield %next : f32
  } -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
func.func private @columns(%x: tensor<30000x8xf32>, %o: tensor<8xf32>) -> tensor<8xf32> attributes {kernel.reads = 1 : i64} {
  %start = arith.constant 0.0 : f32
  %fill = linalg.fill ins(%start : f32) outs(%o : tensor<8xf32>) -> tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<30000x8xf32>) outs(%fill : tensor<8xf32>) {
  ^bb0(%element: f32, %sum: f32):
    %next = arith.addf %element, %sum : f32
    linalg.yield %next : f32
  } -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
