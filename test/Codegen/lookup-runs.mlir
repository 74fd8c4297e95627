// A look-up of rows loads runs of a row, and its rows are tasks: the table stays whole for every
// task. Elements that are not contiguous in the table are loaded per lane.
// RUN: tessera-opt %s --tessera-compile-kernels="print-loops cpu=haswell" -o /dev/null | FileCheck %s

// CHECK: rows: vectorised, tasks 128, stack 0, heap 0
// CHECK: %[[ROW:.*]] = arith.minsi %{{.*}}, %c65535
// CHECK: vector.load %arg0[%[[ROW]], %{{.*}}] : memref<65536x512xf32>, vector<8xf32>
// CHECK-NOT: memref.load %arg0
func.func private @rows(%table: tensor<65536x512xf32>, %indices: tensor<4096xi32>, %y: tensor<4096x512xf32>) -> tensor<4096x512xf32> attributes {kernel.reads = 2 : i64} {
  %first = arith.constant 0 : index
  %last = arith.constant 65535 : index
  %found = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%indices : tensor<4096xi32>) outs(%y : tensor<4096x512xf32>) {
  ^bb0(%index: i32, %_: f32):
    %j = linalg.index 1 : index
    %at = arith.index_cast %index : i32 to index
    %low = arith.maxsi %at, %first : index
    %row = arith.minsi %low, %last : index
    %x = tensor.extract %table[%row, %j] : tensor<65536x512xf32>
    linalg.yield %x : f32
  } -> tensor<4096x512xf32>
  return %found : tensor<4096x512xf32>
}

// CHECK: backwards: vectorised
// CHECK: memref.load %arg0
// CHECK: vector.from_elements
func.func private @backwards(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> attributes {kernel.reads = 1 : i64} {
  %last = arith.constant 63 : index
  %flipped = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%y : tensor<64xf32>) {
  ^bb0(%_: f32):
    %i = linalg.index 0 : index
    %at = arith.subi %last, %i : index
    %element = tensor.extract %x[%at] : tensor<64xf32>
    linalg.yield %element : f32
  } -> tensor<64xf32>
  return %flipped : tensor<64xf32>
}

// Values that a body reads at separate indices are complete before the body's loop begins.
// CHECK: twice: vectorised
// CHECK: scf.for {{.*}} step %c
// CHECK: arith.addf
// CHECK: scf.for
// CHECK: memref.load
func.func private @twice(%x: tensor<256x64xf32>, %indices: tensor<256xi32>, %y: tensor<256x64xf32>) -> tensor<256x64xf32> attributes {kernel.reads = 2 : i64} {
  %empty = tensor.empty() : tensor<256x64xf32>
  %doubled = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<256x64xf32>) outs(%empty : tensor<256x64xf32>) {
  ^bb0(%a: f32, %_: f32):
    %b = arith.addf %a, %a : f32
    linalg.yield %b : f32
  } -> tensor<256x64xf32>
  %found = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%indices : tensor<256xi32>) outs(%y : tensor<256x64xf32>) {
  ^bb0(%index: i32, %_: f32):
    %j = linalg.index 1 : index
    %row = arith.index_cast %index : i32 to index
    %element = tensor.extract %doubled[%row, %j] : tensor<256x64xf32>
    linalg.yield %element : f32
  } -> tensor<256x64xf32>
  return %found : tensor<256x64xf32>
}
