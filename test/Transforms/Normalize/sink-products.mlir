// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: tessera-opt %s --dist-normalize | FileCheck %s
// RUN: tessera run %s --check --steps 1

// What a loop adds up of values that are stacked in any case is one product of the stacks.

#A = affine_map<(m, n, k) -> (k, m)>
#B = affine_map<(m, n, k) -> (k, n)>
#C = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
#one = affine_map<(i) -> (i)>

dist.process_mesh @m(shape = [2], dim_names = ["x"])

// From the last iteration to the first: h is read, d is stacked. The sum of d over its rows is a sum over two dimensions.
// CHECK-LABEL: func.func @main
// CHECK: %[[LOOP:.*]]:2 = scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (tensor<4x3xf32>, tensor<5x4x3xf32>)
// CHECK-NOT: linalg.contract
// CHECK: scf.yield
// CHECK: linalg.contract {{.*}} ins(%arg0, %[[LOOP]]#1 : tensor<5x4x2xf32>, tensor<5x4x3xf32>) {{.*}} -> tensor<2x3xf32>
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction", "parallel", "reduction"]} ins(%[[LOOP]]#1 : tensor<5x4x3xf32>)
func.func @main(%h: tensor<5x4x2xf32>, %s: tensor<4x3xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %w: tensor<2x3xf32>)
    -> (tensor<2x3xf32>, tensor<3xf32>, tensor<5x4x3xf32>, tensor<4x3xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %stack = arith.constant dense<0.0> : tensor<5x4x3xf32>
  %bias = arith.constant dense<0.0> : tensor<3xf32>
  %r:4 = scf.for %t = %c0 to %c5 step %c1 iter_args(%state = %s, %ds = %stack, %sum = %w, %b = %bias)
      -> (tensor<4x3xf32>, tensor<5x4x3xf32>, tensor<2x3xf32>, tensor<3xf32>) {
    %back = arith.subi %c4, %t : index
    %d = math.tanh %state : tensor<4x3xf32>
    %ht = tensor.extract_slice %h[%back, 0, 0] [1, 4, 2] [1, 1, 1] : tensor<5x4x2xf32> to tensor<4x2xf32>
    %zero = arith.constant dense<0.0> : tensor<2x3xf32>
    %p = linalg.contract indexing_maps = [#A, #B, #C] ins(%ht, %d : tensor<4x2xf32>, tensor<4x3xf32>) outs(%zero : tensor<2x3xf32>) -> tensor<2x3xf32>
    %added = arith.addf %sum, %p : tensor<2x3xf32>
    %none = arith.constant dense<0.0> : tensor<3xf32>
    %rows = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["reduction", "parallel"]} ins(%d : tensor<4x3xf32>) outs(%none : tensor<3xf32>) {
    ^bb0(%x: f32, %o: f32):
      %y = arith.addf %o, %x : f32
      linalg.yield %y : f32
    } -> tensor<3xf32>
    %biased = arith.addf %b, %rows : tensor<3xf32>
    %next = arith.addf %d, %state : tensor<4x3xf32>
    %put = tensor.insert_slice %d into %ds[%back, 0, 0] [1, 4, 3] [1, 1, 1] : tensor<4x3xf32> into tensor<5x4x3xf32>
    scf.yield %next, %put, %added, %biased : tensor<4x3xf32>, tensor<5x4x3xf32>, tensor<2x3xf32>, tensor<3xf32>
  }
  return %r#2, %r#3, %r#1, %r#0 : tensor<2x3xf32>, tensor<3xf32>, tensor<5x4x3xf32>, tensor<4x3xf32>
}

// The other index of the two stacks: each product is of values of two iterations, and stays.
// CHECK-LABEL: func.func @other_place
// CHECK: scf.for
// CHECK: linalg.contract
// CHECK: scf.yield
func.func @other_place(%h: tensor<5x4x2xf32>, %g: tensor<5x4x3xf32>, %w: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %r = scf.for %t = %c0 to %c5 step %c1 iter_args(%sum = %w) -> tensor<2x3xf32> {
    %back = arith.subi %c4, %t : index
    %ht = tensor.extract_slice %h[%back, 0, 0] [1, 4, 2] [1, 1, 1] : tensor<5x4x2xf32> to tensor<4x2xf32>
    %gt = tensor.extract_slice %g[%t, 0, 0] [1, 4, 3] [1, 1, 1] : tensor<5x4x3xf32> to tensor<4x3xf32>
    %zero = arith.constant dense<0.0> : tensor<2x3xf32>
    %p = linalg.contract indexing_maps = [#A, #B, #C] ins(%ht, %gt : tensor<4x2xf32>, tensor<4x3xf32>) outs(%zero : tensor<2x3xf32>) -> tensor<2x3xf32>
    %added = arith.addf %sum, %p : tensor<2x3xf32>
    scf.yield %added : tensor<2x3xf32>
  }
  return %r : tensor<2x3xf32>
}

// The sum is read in the loop.
// CHECK-LABEL: func.func @read
// CHECK: scf.for
// CHECK: linalg.contract
// CHECK: scf.yield
func.func @read(%h: tensor<5x4x2xf32>, %g: tensor<5x4x3xf32>, %w: tensor<2x3xf32>, %s: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %r:2 = scf.for %t = %c0 to %c5 step %c1 iter_args(%sum = %w, %other = %s) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %ht = tensor.extract_slice %h[%t, 0, 0] [1, 4, 2] [1, 1, 1] : tensor<5x4x2xf32> to tensor<4x2xf32>
    %gt = tensor.extract_slice %g[%t, 0, 0] [1, 4, 3] [1, 1, 1] : tensor<5x4x3xf32> to tensor<4x3xf32>
    %zero = arith.constant dense<0.0> : tensor<2x3xf32>
    %p = linalg.contract indexing_maps = [#A, #B, #C] ins(%ht, %gt : tensor<4x2xf32>, tensor<4x3xf32>) outs(%zero : tensor<2x3xf32>) -> tensor<2x3xf32>
    %added = arith.addf %sum, %p : tensor<2x3xf32>
    %scaled = arith.mulf %other, %added : tensor<2x3xf32>
    scf.yield %added, %scaled : tensor<2x3xf32>, tensor<2x3xf32>
  }
  return %r#0, %r#1 : tensor<2x3xf32>, tensor<2x3xf32>
}

// A stack that is read and cleared behind is not carried; one that is read where it was cleared is.
// CHECK-LABEL: func.func @read_once
// CHECK: scf.for {{.*}} iter_args(%{{[a-z0-9]*}} = %arg1) -> (tensor<4xf32>)
// CHECK: tensor.extract_slice %arg0
func.func @read_once(%c: tensor<5x4xf32>, %s: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %zero = arith.constant dense<0.0> : tensor<4xf32>
  %r:2 = scf.for %t = %c0 to %c5 step %c1 iter_args(%state = %s, %rest = %c) -> (tensor<4xf32>, tensor<5x4xf32>) {
    %d = tensor.extract_slice %rest[%t, 0] [1, 4] [1, 1] : tensor<5x4xf32> to tensor<4xf32>
    %clear = tensor.insert_slice %zero into %rest[%t, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<5x4xf32>
    %sq = arith.mulf %state, %state : tensor<4xf32>
    %next = arith.addf %sq, %d : tensor<4xf32>
    scf.yield %next, %clear : tensor<4xf32>, tensor<5x4xf32>
  }
  return %r#0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @read_again
// CHECK: scf.for {{.*}} -> (tensor<4xf32>, tensor<5x4xf32>)
func.func @read_again(%c: tensor<5x4xf32>, %s: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %zero = arith.constant dense<0.0> : tensor<4xf32>
  %r:2 = scf.for %t = %c0 to %c5 step %c1 iter_args(%state = %s, %rest = %c) -> (tensor<4xf32>, tensor<5x4xf32>) {
    %back = arith.subi %c4, %t : index
    %d = tensor.extract_slice %rest[%back, 0] [1, 4] [1, 1] : tensor<5x4xf32> to tensor<4xf32>
    %clear = tensor.insert_slice %zero into %rest[%t, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<5x4xf32>
    %sq = arith.mulf %state, %state : tensor<4xf32>
    %next = arith.addf %sq, %d : tensor<4xf32>
    scf.yield %next, %clear : tensor<4xf32>, tensor<5x4xf32>
  }
  return %r#0 : tensor<4xf32>
}
