// Collectives of a loop overlap with products of another iteration.
// RUN: tessera-opt %s --dist-prefetch-loops=memory-budget=1 --split-input-file | FileCheck %s
// RUN: tessera-opt %s --dist-prefetch-loops --split-input-file | FileCheck %s --check-prefix=LITTLE

dist.process_mesh @pod(shape = [8], dim_names = ["d"])

#left = affine_map<(i, j, k) -> (i, k)>
#right = affine_map<(i, j, k) -> (k, j)>
#result = affine_map<(i, j, k) -> (i, j)>

// An iteration gathers the weights of the next one: for seven layers one product before the loop,
// two iterations of two products, and two after it. A tenth of this memory is too little for that.
// CHECK-LABEL: func.func @gathers
// CHECK: %[[FIRST:.*]] = dist.all_gather
// CHECK: %[[LOOP:.*]]:2 = scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[X:.*]] = %arg0, %[[W:.*]] = %[[FIRST]])
// CHECK: %[[SLICE:.*]] = tensor.extract_slice %arg1[%[[I]], 0, 0]
// CHECK-NEXT: %[[ODD:.*]] = dist.all_gather %[[SLICE]]
// CHECK: %[[Y:.*]] = linalg.contract {{.*}} ins(%[[X]], %[[W]]
// CHECK: %[[EVEN:.*]] = dist.all_gather
// CHECK: %[[Z:.*]] = linalg.contract {{.*}} ins(%[[Y]], %[[ODD]]
// CHECK-NEXT: scf.yield %[[Z]], %[[EVEN]]
// CHECK: linalg.contract {{.*}} ins(%[[LOOP]]#0, %[[LOOP]]#1
// CHECK: return
// LITTLE-LABEL: func.func @gathers
// LITTLE: scf.for %{{.*}} iter_args(%{{[^,]*}} = %arg0) ->
func.func @gathers(%x: tensor<64x512xf32>, %w: tensor<7x64x512xf32>) -> tensor<64x512xf32> attributes {dist.view = "local"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %zero = arith.constant dense<0.0> : tensor<64x512xf32>
  %y = scf.for %i = %c0 to %c7 step %c1 iter_args(%h = %x) -> (tensor<64x512xf32>) {
    %own = tensor.extract_slice %w[%i, 0, 0] [1, 64, 512] [1, 1, 1] : tensor<7x64x512xf32> to tensor<64x512xf32>
    %layer = dist.all_gather %own over @pod ["d"] dim = 0 : tensor<64x512xf32> -> tensor<512x512xf32>
    %next = linalg.contract indexing_maps = [#left, #right, #result] ins(%h, %layer : tensor<64x512xf32>, tensor<512x512xf32>) outs(%zero : tensor<64x512xf32>) -> tensor<64x512xf32>
    scf.yield %next : tensor<64x512xf32>
  }
  return %y : tensor<64x512xf32>
}

// -----

dist.process_mesh @pod(shape = [8], dim_names = ["d"])

#transposed = affine_map<(i, j, k) -> (k, i)>
#right = affine_map<(i, j, k) -> (k, j)>
#result = affine_map<(i, j, k) -> (i, j)>

// The accumulated values of an iteration are reduced one iteration later.
// CHECK-LABEL: func.func @sums
// CHECK: %[[FIRST:.*]] = linalg.contract
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%[[ALL:[^ ]*]] = %{{[^,]*}}, %[[LAST:[^ ]*]] = %[[FIRST]])
// CHECK: %[[BEFORE:.*]] = arith.addi %[[I]]
// CHECK: %[[SUM:.*]] = dist.reduce_scatter %[[LAST]]
// CHECK: tensor.insert_slice %[[SUM]] into %[[ALL]][%[[BEFORE]], 0, 0]
// CHECK: linalg.contract
// CHECK: dist.reduce_scatter
// CHECK: linalg.contract
// CHECK-NEXT: scf.yield
func.func @sums(%x: tensor<6x256x512xf32>) -> tensor<6x64x512xf32> attributes {dist.view = "local"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %zero = arith.constant dense<0.0> : tensor<512x512xf32>
  %stack = arith.constant dense<0.0> : tensor<6x64x512xf32>
  %sums = scf.for %i = %c0 to %c6 step %c1 iter_args(%all = %stack) -> (tensor<6x64x512xf32>) {
    %rows = tensor.extract_slice %x[%i, 0, 0] [1, 256, 512] [1, 1, 1] : tensor<6x256x512xf32> to tensor<256x512xf32>
    %g = linalg.contract indexing_maps = [#transposed, #right, #result] ins(%rows, %rows : tensor<256x512xf32>, tensor<256x512xf32>) outs(%zero : tensor<512x512xf32>) -> tensor<512x512xf32>
    %s = dist.reduce_scatter %g over @pod ["d"] dim = 0 reduction = sum : tensor<512x512xf32> -> tensor<64x512xf32>
    %more = tensor.insert_slice %s into %all[%i, 0, 0] [1, 64, 512] [1, 1, 1] : tensor<64x512xf32> into tensor<6x64x512xf32>
    scf.yield %more : tensor<6x64x512xf32>
  }
  return %sums : tensor<6x64x512xf32>
}

// -----

dist.process_mesh @pod(shape = [8], dim_names = ["d"])

// The gathered value depends on the previous iteration: the loop stays unchanged.
// CHECK-LABEL: func.func @carried
// CHECK: scf.for
// CHECK: dist.all_gather
// CHECK-NOT: dist.all_gather
func.func @carried(%x: tensor<64x512xf32>) -> tensor<64x512xf32> attributes {dist.view = "local"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %empty = tensor.empty() : tensor<64x512xf32>
  %y = scf.for %i = %c0 to %c7 step %c1 iter_args(%h = %x) -> (tensor<64x512xf32>) {
    %all = dist.all_gather %h over @pod ["d"] dim = 0 : tensor<64x512xf32> -> tensor<512x512xf32>
    %rows = tensor.extract_slice %all[0, 0] [64, 512] [1, 1] : tensor<512x512xf32> to tensor<64x512xf32>
    %next = linalg.add ins(%h, %rows : tensor<64x512xf32>, tensor<64x512xf32>) outs(%empty : tensor<64x512xf32>) -> tensor<64x512xf32>
    scf.yield %next : tensor<64x512xf32>
  }
  return %y : tensor<64x512xf32>
}
