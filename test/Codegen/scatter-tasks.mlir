// Rows of a scatter are tasks: each fills or copies its rows, computes the indices, and adds the terms of its rows in
// order. The terms of a row are vectors. Results are equal for any number of workers.
// RUN: tessera-opt %s --tessera-compile-kernels="print-loops=true" -o /dev/null --split-input-file | FileCheck %s

// The number of rows is no multiple of those of a task: the last task has its own loop.
// CHECK: rows: vectorised, tasks 23, stack 0, heap 0
// CHECK: scf.for %[[FIRST:.*]] = %{{.*}} to %{{.*}} step %c44
// CHECK: vector.store
// CHECK: scf.for %[[I:.*]] = %c0 to %c512
// CHECK: %[[INDEX:.*]] = memref.load %arg0[%[[I]]]
// CHECK: arith.minsi
// CHECK: arith.cmpi sge, %{{.*}}, %[[FIRST]]
// CHECK: arith.cmpi slt
// CHECK: memref.subview %arg1[%[[I]], 0]
// CHECK: vector.load {{.*}} vector<{{[0-9]+}}xf32>
// CHECK: {kernel.task_loop}
// CHECK: step %c44
// CHECK: {kernel.task_loop}
func.func private @rows(%raw: tensor<512xi32>, %g: tensor<512x512xf32>, %out: tensor<1000x512xf32>) -> tensor<1000x512xf32> attributes {kernel.reads = 2 : i64} {
  %most = arith.constant 999 : i32
  %none = tensor.empty() : tensor<512xi32>
  %indices = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%raw : tensor<512xi32>) outs(%none : tensor<512xi32>) {
  ^bb0(%x: i32, %_: i32):
    %index = arith.minsi %x, %most : i32
    linalg.yield %index : i32
  } -> tensor<512xi32>
  %c0 = arith.constant 0.0 : f32
  %zero = linalg.fill ins(%c0 : f32) outs(%out : tensor<1000x512xf32>) -> tensor<1000x512xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, v, j) -> (i)>, affine_map<(i, v, j) -> (i, j)>, affine_map<(i, v, j) -> (v, j)>],
                       iterator_types = ["reduction", "parallel", "parallel"]}
      ins(%indices, %g : tensor<512xi32>, tensor<512x512xf32>) outs(%zero : tensor<1000x512xf32>) {
  ^bb0(%index: i32, %x: f32, %sum: f32):
    %v = linalg.index 1 : index
    %number = arith.index_cast %v : index to i32
    %here = arith.cmpi eq, %index, %number : i32
    %term = arith.select %here, %x, %c0 : f32
    %next = arith.addf %sum, %term : f32
    linalg.yield %next : f32
  } -> tensor<1000x512xf32>
  return %y : tensor<1000x512xf32>
}

// -----

// A tensor that is only read is copied by tasks; what is in the destination stays there.
// CHECK: onto: vectorised, tasks 24, stack 0, heap 0
func.func private @onto(%indices: tensor<512xi32>, %g: tensor<512x512xf32>, %old: tensor<1024x512xf32>, %out: tensor<1024x512xf32>) -> tensor<1024x512xf32> attributes {kernel.reads = 3 : i64} {
  %c0 = arith.constant 0.0 : f32
  %y = linalg.generic {indexing_maps = [affine_map<(i, v, j) -> (i)>, affine_map<(i, v, j) -> (i, j)>, affine_map<(i, v, j) -> (v, j)>],
                       iterator_types = ["reduction", "parallel", "parallel"]}
      ins(%indices, %g : tensor<512xi32>, tensor<512x512xf32>) outs(%old : tensor<1024x512xf32>) {
  ^bb0(%index: i32, %x: f32, %sum: f32):
    %v = linalg.index 1 : index
    %number = arith.index_cast %v : index to i32
    %here = arith.cmpi eq, %index, %number : i32
    %term = arith.select %here, %x, %c0 : f32
    %next = arith.addf %sum, %term : f32
    linalg.yield %next : f32
  } -> tensor<1024x512xf32>
  return %y : tensor<1024x512xf32>
}

// -----

// The rows are a dimension before the index, which differs by column: every term is written alone.
// CHECK: columns: vectorised, tasks 4, stack 0, heap 0
// CHECK-NOT: arith.cmpi sge
// CHECK: memref.store
func.func private @columns(%indices: tensor<64x512x4xi32>, %g: tensor<64x512x4xf32>, %out: tensor<64x1024x4xf32>) -> tensor<64x1024x4xf32> attributes {kernel.reads = 2 : i64} {
  %c0 = arith.constant 0.0 : f32
  %y = linalg.generic {indexing_maps = [affine_map<(b, i, v, j) -> (b, i, j)>, affine_map<(b, i, v, j) -> (b, i, j)>, affine_map<(b, i, v, j) -> (b, v, j)>],
                       iterator_types = ["parallel", "reduction", "parallel", "parallel"]}
      ins(%indices, %g : tensor<64x512x4xi32>, tensor<64x512x4xf32>) outs(%out : tensor<64x1024x4xf32>) {
  ^bb0(%index: i32, %x: f32, %sum: f32):
    %v = linalg.index 2 : index
    %number = arith.index_cast %v : index to i32
    %here = arith.cmpi eq, %index, %number : i32
    %term = arith.select %here, %x, %c0 : f32
    %next = arith.addf %sum, %term : f32
    linalg.yield %next : f32
  } -> tensor<64x1024x4xf32>
  return %y : tensor<64x1024x4xf32>
}

// -----

// As many terms as in a histogram are added by one task: others would only read the indices.
// CHECK: histogram: vectorised, tasks 1,
func.func private @histogram(%indices: tensor<65536xi32>, %g: tensor<65536xf32>, %out: tensor<1000xf32>) -> tensor<1000xf32> attributes {kernel.reads = 2 : i64} {
  %c0 = arith.constant 0.0 : f32
  %y = linalg.generic {indexing_maps = [affine_map<(i, v) -> (i)>, affine_map<(i, v) -> (i)>, affine_map<(i, v) -> (v)>],
                       iterator_types = ["reduction", "parallel"]}
      ins(%indices, %g : tensor<65536xi32>, tensor<65536xf32>) outs(%out : tensor<1000xf32>) {
  ^bb0(%index: i32, %x: f32, %sum: f32):
    %v = linalg.index 1 : index
    %number = arith.index_cast %v : index to i32
    %here = arith.cmpi eq, %index, %number : i32
    %term = arith.select %here, %x, %c0 : f32
    %next = arith.addf %sum, %term : f32
    linalg.yield %next : f32
  } -> tensor<1000xf32>
  return %y : tensor<1000xf32>
}
