// Threads of a launch that access the same bytes, one of them to write, need a barrier between, and threads of different
// blocks must not do it at all. The check compares all accesses, so that a race needs no wrong value to be found.
// RUN: tessera-opt %s --tessera-check-gpu-kernels -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: not tessera-opt %s --tessera-check-gpu-kernels="drop-barrier=0 orders=false" -o /dev/null 2>&1 | FileCheck %s --check-prefix=BARRIER
// RUN: not tessera-opt %s --tessera-check-gpu-kernels="overlap-workspace orders=false" -o /dev/null 2>&1 | FileCheck %s --check-prefix=OVERLAP

// EQUAL: softmax: rows equal
// BARRIER: error: on the emulated GPU launch 0: kernel '{{.*}}': thread (1, 0, 0) of block (0, 0, 0) reads byte 0 of shared memory, which thread (0, 0, 0) of block (0, 0, 0) writes, with no barrier between them
// BARRIER-NEXT: @softmax
func.func private @softmax(%x: tensor<64x1000xf32>, %o: tensor<64x1000xf32>) -> tensor<64x1000xf32>
    attributes {kernel.reads = 1 : i64} {
  %0 = linalg.softmax dimension(1) ins(%x : tensor<64x1000xf32>) outs(%o : tensor<64x1000xf32>) -> tensor<64x1000xf32>
  return %0 : tensor<64x1000xf32>
}

// The threads of a column combine their parts in shared memory.
// EQUAL: columns: plain plain equal
func.func private @columns(%x: tensor<200000x4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> attributes {kernel.reads = 1 : i64} {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%o : tensor<4xf32>) -> tensor<4xf32>
  %0 = linalg.reduce ins(%x : tensor<200000x4xf32>) outs(%f : tensor<4xf32>) dimensions = [0]
    (%a: f32, %b: f32) { %s = arith.addf %a, %b : f32
      linalg.yield %s : f32 }
  return %0 : tensor<4xf32>
}

// A launch reads the maxima and sums of parts, which are in the workspace, and writes those of rows there.
// EQUAL: long: rows {{.*}}equal
// OVERLAP: error: on the emulated GPU launch 1: kernel '{{.*}}': thread (16, 0, 0) of block (0, 0, 0) writes byte 4 of the workspace, which thread (0, 0, 0) of block (0, 0, 0) reads, with no barrier between them
// OVERLAP-NEXT: @long
func.func private @long(%x: tensor<2x120000xf32>, %o: tensor<2x120000xf32>) -> tensor<2x120000xf32> attributes {kernel.reads = 1 : i64} {
  %0 = linalg.softmax dimension(1) ins(%x : tensor<2x120000xf32>) outs(%o : tensor<2x120000xf32>) -> tensor<2x120000xf32>
  return %0 : tensor<2x120000xf32>
}

// All threads of a team read the old element of their row, which the first one then writes: a barrier is between.
// EQUAL: accumulated: rows equal
func.func private @accumulated(%x: tensor<33x77xf32>, %o: tensor<33xf32>) -> tensor<33xf32> attributes {kernel.reads = 1 : i64} {
  %0 = linalg.reduce ins(%x : tensor<33x77xf32>) outs(%o : tensor<33xf32>) dimensions = [1]
    (%a: f32, %b: f32) { %s = arith.addf %a, %b : f32
      linalg.yield %s : f32 }
  return %0 : tensor<33xf32>
}

// Threads beyond the end of a row read its last element, which another thread then writes.
// EQUAL: diagonal: rows equal
func.func private @diagonal(%a: tensor<5xf64>, %m: tensor<5x5xf64>, %b: tensor<5xf64>, %o: tensor<5x5xf64>) -> tensor<5x5xf64>
    attributes {kernel.reads = 3 : i64} {
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i, i)>], iterator_types = ["parallel"]}
      ins(%a : tensor<5xf64>) outs(%m : tensor<5x5xf64>) {
  ^bb0(%in: f64, %out: f64):
    %s = arith.addf %out, %in : f64
    linalg.yield %s : f64
  } -> tensor<5x5xf64>
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%0, %b : tensor<5x5xf64>, tensor<5xf64>) outs(%o : tensor<5x5xf64>) {
  ^bb0(%in: f64, %in2: f64, %out: f64):
    %s = arith.addf %in, %in2 : f64
    linalg.yield %s : f64
  } -> tensor<5x5xf64>
  return %1 : tensor<5x5xf64>
}
