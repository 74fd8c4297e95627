// Updates that replace elements of a tensor run in order, in its bytes: no loop visits the rows that do not change.
// RUN: tessera-opt %s --tessera-compile-kernels="print-loops=true" -o /dev/null --split-input-file | FileCheck %s

// A step of a cache: one row for each sequence.
// CHECK: cache: vectorised
// CHECK-NOT: to %c1024
// CHECK: scf.for %[[B:.*]] = %c0 to %c4
// CHECK: %[[POSITION:.*]] = memref.load %arg0[%[[B]]]
// CHECK: memref.subview %arg2[%[[B]], %{{.*}}, 0, 0] [1, 1, 8, 16]
// CHECK: vector.store
// CHECK-NOT: to %c1024
func.func private @cache(%pos: tensor<4xi32>, %x: tensor<4x8x16xf32>, %cache: tensor<4x1024x8x16xf32>) -> tensor<4x1024x8x16xf32> attributes {kernel.reads = 2 : i64} {
  %y = linalg.generic {indexing_maps = [affine_map<(b, p, h, d) -> (b)>, affine_map<(b, p, h, d) -> (b, h, d)>, affine_map<(b, p, h, d) -> (b, p, h, d)>],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
     ins(%pos, %x : tensor<4xi32>, tensor<4x8x16xf32>) outs(%cache : tensor<4x1024x8x16xf32>) {
  ^bb0(%i: i32, %u: f32, %old: f32):
    %p = linalg.index 1 : index
    %n = arith.index_cast %p : index to i32
    %here = arith.cmpi eq, %i, %n : i32
    %v = arith.select %here, %u, %old : f32
    linalg.yield %v : f32
  } -> tensor<4x1024x8x16xf32>
  return %y : tensor<4x1024x8x16xf32>
}

// -----

// The last of equal indices wins: tasks keep the order, also from a constant.
// CHECK: rows: vectorised, tasks 23, stack 0, heap 0
// CHECK: scf.for %[[FIRST:.*]] = %{{.*}} to %{{.*}} step %c44
// CHECK: scf.for %[[I:.*]] = %c0 to %c512
// CHECK: memref.load %arg0[%[[I]]]
// CHECK: memref.subview %arg1[%[[I]], 0]
// CHECK: vector.store
// CHECK: {kernel.task_loop}
func.func private @rows(%indices: tensor<512xi32>, %u: tensor<512x512xf32>, %out: tensor<1000x512xf32>) -> tensor<1000x512xf32> attributes {kernel.reads = 2 : i64} {
  %c0 = arith.constant 0.0 : f32
  %zero = linalg.fill ins(%c0 : f32) outs(%out : tensor<1000x512xf32>) -> tensor<1000x512xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(v, j, i) -> (i)>, affine_map<(v, j, i) -> (i, j)>, affine_map<(v, j, i) -> (v, j)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%indices, %u : tensor<512xi32>, tensor<512x512xf32>) outs(%zero : tensor<1000x512xf32>) {
  ^bb0(%index: i32, %x: f32, %old: f32):
    %v = linalg.index 0 : index
    %number = arith.index_cast %v : index to i32
    %here = arith.cmpi eq, %index, %number : i32
    %next = arith.select %here, %x, %old : f32
    linalg.yield %next : f32
  } -> tensor<1000x512xf32>
  return %y : tensor<1000x512xf32>
}
