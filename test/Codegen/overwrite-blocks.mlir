// RUN: tessera-opt %s --tessera-pipeline="compile-to=scheduled" --codegen-prepare | FileCheck %s
// RUN: tessera run %s --function blocks --check=interpreter | FileCheck %s --check-prefix=VALUE
// RUN: tessera run %s --function rest --check=interpreter | FileCheck %s --check-prefix=VALUE
// RUN: tessera run %s --function overlapping --check=interpreter | FileCheck %s --check-prefix=VALUE
// RUN: tessera run %s --function another_block --check=interpreter | FileCheck %s --check-prefix=VALUE
// RUN: tessera run %s --function needed --check=interpreter | FileCheck %s --check-prefix=VALUE
// RUN: tessera run %s --function both_loops --check=interpreter | FileCheck %s --check-prefix=VALUE
// RUN: tessera run %s --function twice --check=interpreter | FileCheck %s --check-prefix=VALUE

// A loop that fills a tensor block by block writes over a tensor that is read block by block, if
// nothing else reads it and no block is written twice.
// VALUE: check result0 ok

#id = affine_map<(i, j) -> (i, j)>

// CHECK-LABEL: @blocks(
// CHECK: %[[X:.+]] = linalg.generic
// CHECK: scf.for {{.*}} iter_args(%[[C:.+]] = %[[X]])
// CHECK: tensor.extract_slice %[[C]]
func.func @blocks(%a: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c6 = arith.constant 6 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %e = tensor.empty() : tensor<8x4xf32>
  %x = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%in: f32, %o: f32):
    %m = math.exp %in : f32
    linalg.yield %m : f32
  } -> tensor<8x4xf32>
  %y = scf.for %i = %c0 to %c8 step %c2 iter_args(%c = %e) -> (tensor<8x4xf32>) {
    %s = tensor.extract_slice %x[%i, 0] [2, 4] [1, 1] : tensor<8x4xf32> to tensor<2x4xf32>
    %f = tensor.empty() : tensor<2x4xf32>
    %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<2x4xf32>) outs(%f : tensor<2x4xf32>) {
    ^bb0(%in: f32, %o: f32):
      %m = arith.addf %in, %in : f32
      linalg.yield %m : f32
    } -> tensor<2x4xf32>
    %w = tensor.insert_slice %p into %c[%i, 0] [2, 4] [1, 1] : tensor<2x4xf32> into tensor<8x4xf32>
    scf.yield %w : tensor<8x4xf32>
  }
  return %y : tensor<8x4xf32>
}

// CHECK-LABEL: @rest(
// CHECK: %[[X:.+]] = linalg.generic
// CHECK: scf.for {{.*}} iter_args(%[[C:.+]] = %[[X]])
// CHECK: tensor.extract_slice %[[C]]
// CHECK: scf.for {{.*}} iter_args(%[[D:.+]] = %{{.+}})
// CHECK: tensor.extract_slice %[[D]]
func.func @rest(%a: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c6 = arith.constant 6 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %e = tensor.empty() : tensor<8x4xf32>
  %x = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%in: f32, %o: f32):
    %m = math.exp %in : f32
    linalg.yield %m : f32
  } -> tensor<8x4xf32>
  %z = scf.for %i = %c0 to %c6 step %c3 iter_args(%c = %e) -> (tensor<8x4xf32>) {
    %s = tensor.extract_slice %x[%i, 0] [3, 4] [1, 1] : tensor<8x4xf32> to tensor<3x4xf32>
    %f = tensor.empty() : tensor<3x4xf32>
    %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<3x4xf32>) outs(%f : tensor<3x4xf32>) {
    ^bb0(%in: f32, %o: f32):
      %m = arith.addf %in, %in : f32
      linalg.yield %m : f32
    } -> tensor<3x4xf32>
    %w = tensor.insert_slice %p into %c[%i, 0] [3, 4] [1, 1] : tensor<3x4xf32> into tensor<8x4xf32>
    scf.yield %w : tensor<8x4xf32>
  }
  %y = scf.for %i = %c6 to %c8 step %c2 iter_args(%c = %z) -> (tensor<8x4xf32>) {
    %s = tensor.extract_slice %x[%i, 0] [2, 4] [1, 1] : tensor<8x4xf32> to tensor<2x4xf32>
    %f = tensor.empty() : tensor<2x4xf32>
    %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<2x4xf32>) outs(%f : tensor<2x4xf32>) {
    ^bb0(%in: f32, %o: f32):
      %m = arith.addf %in, %in : f32
      linalg.yield %m : f32
    } -> tensor<2x4xf32>
    %w = tensor.insert_slice %p into %c[%i, 0] [2, 4] [1, 1] : tensor<2x4xf32> into tensor<8x4xf32>
    scf.yield %w : tensor<8x4xf32>
  }
  return %y : tensor<8x4xf32>
}

// CHECK-LABEL: @overlapping(
// CHECK: %[[X:.+]] = linalg.generic
// CHECK: %[[E:.+]] = tensor.empty() : tensor<8x4xf32>
// CHECK: scf.for {{.*}} iter_args(%{{.+}} = %[[E]])
// CHECK: tensor.extract_slice %[[X]]
func.func @overlapping(%a: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c6 = arith.constant 6 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %e = tensor.empty() : tensor<8x4xf32>
  %x = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%in: f32, %o: f32):
    %m = math.exp %in : f32
    linalg.yield %m : f32
  } -> tensor<8x4xf32>
  %y = scf.for %i = %c0 to %c7 step %c1 iter_args(%c = %e) -> (tensor<8x4xf32>) {
    %s = tensor.extract_slice %x[%i, 0] [2, 4] [1, 1] : tensor<8x4xf32> to tensor<2x4xf32>
    %f = tensor.empty() : tensor<2x4xf32>
    %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<2x4xf32>) outs(%f : tensor<2x4xf32>) {
    ^bb0(%in: f32, %o: f32):
      %m = arith.addf %in, %in : f32
      linalg.yield %m : f32
    } -> tensor<2x4xf32>
    %w = tensor.insert_slice %p into %c[%i, 0] [2, 4] [1, 1] : tensor<2x4xf32> into tensor<8x4xf32>
    scf.yield %w : tensor<8x4xf32>
  }
  return %y : tensor<8x4xf32>
}

// CHECK-LABEL: @another_block(
// CHECK: %[[X:.+]] = linalg.generic
// CHECK: %[[E:.+]] = tensor.empty() : tensor<8x4xf32>
// CHECK: scf.for {{.*}} iter_args(%{{.+}} = %[[E]])
// CHECK: tensor.extract_slice %[[X]]
func.func @another_block(%a: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c6 = arith.constant 6 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %e = tensor.empty() : tensor<8x4xf32>
  %x = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%in: f32, %o: f32):
    %m = math.exp %in : f32
    linalg.yield %m : f32
  } -> tensor<8x4xf32>
  %y = scf.for %i = %c0 to %c8 step %c2 iter_args(%c = %e) -> (tensor<8x4xf32>) {
    %k = arith.subi %c6, %i : index
    %s = tensor.extract_slice %x[%k, 0] [2, 4] [1, 1] : tensor<8x4xf32> to tensor<2x4xf32>
    %f = tensor.empty() : tensor<2x4xf32>
    %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<2x4xf32>) outs(%f : tensor<2x4xf32>) {
    ^bb0(%in: f32, %o: f32):
      %m = arith.addf %in, %in : f32
      linalg.yield %m : f32
    } -> tensor<2x4xf32>
    %w = tensor.insert_slice %p into %c[%i, 0] [2, 4] [1, 1] : tensor<2x4xf32> into tensor<8x4xf32>
    scf.yield %w : tensor<8x4xf32>
  }
  return %y : tensor<8x4xf32>
}

// CHECK-LABEL: @needed(
// CHECK: %[[X:.+]] = linalg.generic
// CHECK: %[[E:.+]] = tensor.empty() : tensor<8x4xf32>
// CHECK: scf.for {{.*}} iter_args(%{{.+}} = %[[E]])
// CHECK: tensor.extract_slice %[[X]]
func.func @needed(%a: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c6 = arith.constant 6 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %e = tensor.empty() : tensor<8x4xf32>
  %x = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%in: f32, %o: f32):
    %m = math.exp %in : f32
    linalg.yield %m : f32
  } -> tensor<8x4xf32>
  %y = scf.for %i = %c0 to %c8 step %c2 iter_args(%c = %e) -> (tensor<8x4xf32>) {
    %s = tensor.extract_slice %x[%i, 0] [2, 4] [1, 1] : tensor<8x4xf32> to tensor<2x4xf32>
    %f = tensor.empty() : tensor<2x4xf32>
    %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<2x4xf32>) outs(%f : tensor<2x4xf32>) {
    ^bb0(%in: f32, %o: f32):
      %m = arith.addf %in, %in : f32
      linalg.yield %m : f32
    } -> tensor<2x4xf32>
    %w = tensor.insert_slice %p into %c[%i, 0] [2, 4] [1, 1] : tensor<2x4xf32> into tensor<8x4xf32>
    scf.yield %w : tensor<8x4xf32>
  }
  return %y, %x : tensor<8x4xf32>, tensor<8x4xf32>
}

// CHECK-LABEL: @both_loops(
// CHECK: %[[X:.+]] = linalg.generic
// CHECK: %[[E:.+]] = tensor.empty() : tensor<8x4xf32>
// CHECK: scf.for {{.*}} iter_args(%{{.+}} = %[[E]])
// CHECK: tensor.extract_slice %[[X]]
func.func @both_loops(%a: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c6 = arith.constant 6 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %e = tensor.empty() : tensor<8x4xf32>
  %x = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%in: f32, %o: f32):
    %m = math.exp %in : f32
    linalg.yield %m : f32
  } -> tensor<8x4xf32>
  %z = scf.for %i = %c0 to %c8 step %c2 iter_args(%c = %e) -> (tensor<8x4xf32>) {
    %s = tensor.extract_slice %x[%i, 0] [2, 4] [1, 1] : tensor<8x4xf32> to tensor<2x4xf32>
    %f = tensor.empty() : tensor<2x4xf32>
    %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<2x4xf32>) outs(%f : tensor<2x4xf32>) {
    ^bb0(%in: f32, %o: f32):
      %m = arith.addf %in, %in : f32
      linalg.yield %m : f32
    } -> tensor<2x4xf32>
    %w = tensor.insert_slice %p into %c[%i, 0] [2, 4] [1, 1] : tensor<2x4xf32> into tensor<8x4xf32>
    scf.yield %w : tensor<8x4xf32>
  }
  %y = scf.for %i = %c4 to %c8 step %c2 iter_args(%c = %z) -> (tensor<8x4xf32>) {
    %s = tensor.extract_slice %x[%i, 0] [2, 4] [1, 1] : tensor<8x4xf32> to tensor<2x4xf32>
    %f = tensor.empty() : tensor<2x4xf32>
    %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<2x4xf32>) outs(%f : tensor<2x4xf32>) {
    ^bb0(%in: f32, %o: f32):
      %m = arith.addf %in, %in : f32
      linalg.yield %m : f32
    } -> tensor<2x4xf32>
    %w = tensor.insert_slice %p into %c[%i, 0] [2, 4] [1, 1] : tensor<2x4xf32> into tensor<8x4xf32>
    scf.yield %w : tensor<8x4xf32>
  }
  return %y : tensor<8x4xf32>
}

// CHECK-LABEL: @twice(
// CHECK: %[[X:.+]] = linalg.generic
// CHECK: %[[E:.+]] = tensor.empty() : tensor<8x4xf32>
// CHECK: scf.for {{.*}} iter_args(%{{.+}} = %[[E]])
// CHECK: tensor.extract_slice %[[X]]
// CHECK: scf.for
func.func @twice(%a: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c6 = arith.constant 6 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %e = tensor.empty() : tensor<8x4xf32>
  %x = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%in: f32, %o: f32):
    %m = math.exp %in : f32
    linalg.yield %m : f32
  } -> tensor<8x4xf32>
  %y = scf.for %i = %c0 to %c8 step %c2 iter_args(%d = %e) -> (tensor<8x4xf32>) {
    %n = scf.for %j = %c0 to %c2 step %c1 iter_args(%c = %d) -> (tensor<8x4xf32>) {
      %s = tensor.extract_slice %x[%i, 0] [2, 4] [1, 1] : tensor<8x4xf32> to tensor<2x4xf32>
      %f = tensor.empty() : tensor<2x4xf32>
      %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<2x4xf32>) outs(%f : tensor<2x4xf32>) {
      ^bb0(%in: f32, %o: f32):
        %m = arith.addf %in, %in : f32
        linalg.yield %m : f32
      } -> tensor<2x4xf32>
      %w = tensor.insert_slice %p into %c[%i, 0] [2, 4] [1, 1] : tensor<2x4xf32> into tensor<8x4xf32>
      scf.yield %w : tensor<8x4xf32>
    }
    scf.yield %n : tensor<8x4xf32>
  }
  return %y : tensor<8x4xf32>
}
