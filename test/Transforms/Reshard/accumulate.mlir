// RUN: tessera-opt %s --tessera-pipeline="compile-to=partitioned" | FileCheck %s
// RUN: tessera run %s --function sum --check | FileCheck %s --check-prefix=EXEC
// RUN: tessera run %s --function stack --check | FileCheck %s --check-prefix=EXEC
// RUN: tessera run %s --function cut --check | FileCheck %s --check-prefix=EXEC
// RUN: tessera run %s --function blocks --check | FileCheck %s --check-prefix=EXEC
// RUN: tessera-opt %s --tessera-pipeline="compile-to=propagated" --dist-sink-partials=keep-cuts --dist-insert-reshards \
// RUN:   | FileCheck %s --check-prefix=KEPT

// EXEC: {{^}}check  result0  ok

// The sum that a loop accumulates is reduced once, after it.
dist.process_mesh @m(shape = [4], dim_names = ["dp"])

// CHECK-LABEL: func.func @sum(
// CHECK: scf.for
// CHECK: linalg.matmul
// CHECK-NOT: dist.all_reduce
// CHECK: scf.yield
// CHECK: dist.all_reduce
func.func @sum(%x: tensor<6x32x16xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>},
               %y: tensor<6x32x8xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}) -> (tensor<16x8xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x8xf32>
  %g0 = linalg.fill ins(%zero : f32) outs(%e : tensor<16x8xf32>) -> tensor<16x8xf32>
  %g = scf.for %i = %c0 to %c6 step %c1 iter_args(%acc = %g0) -> (tensor<16x8xf32>) {
    %xi = tensor.extract_slice %x[%i, 0, 0] [1, 32, 16] [1, 1, 1] : tensor<6x32x16xf32> to tensor<32x16xf32>
    %yi = tensor.extract_slice %y[%i, 0, 0] [1, 32, 8] [1, 1, 1] : tensor<6x32x8xf32> to tensor<32x8xf32>
    %et = tensor.empty() : tensor<16x32xf32>
    %xt = linalg.transpose ins(%xi : tensor<32x16xf32>) outs(%et : tensor<16x32xf32>) permutation = [1, 0]
    %eg = tensor.empty() : tensor<16x8xf32>
    %fg = linalg.fill ins(%zero : f32) outs(%eg : tensor<16x8xf32>) -> tensor<16x8xf32>
    %gi = linalg.matmul ins(%xt, %yi : tensor<16x32xf32>, tensor<32x8xf32>) outs(%fg : tensor<16x8xf32>) -> tensor<16x8xf32>
    %next = arith.addf %acc, %gi : tensor<16x8xf32>
    scf.yield %next : tensor<16x8xf32>
  }
  return %g : tensor<16x8xf32>
}

// So are stacked values, such as the gradients of scanned layers.
// CHECK-LABEL: func.func @stack(
// CHECK: scf.for
// CHECK: linalg.reduce
// CHECK-NOT: dist.all_reduce
// CHECK: scf.yield
// CHECK: dist.all_reduce {{.*}} : tensor<6x16xf32>
func.func @stack(%x: tensor<6x32x16xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}) -> (tensor<6x16xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x16xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%e : tensor<6x16xf32>) -> tensor<6x16xf32>
  %s = scf.for %i = %c0 to %c6 step %c1 iter_args(%acc = %s0) -> (tensor<6x16xf32>) {
    %xi = tensor.extract_slice %x[%i, 0, 0] [1, 32, 16] [1, 1, 1] : tensor<6x32x16xf32> to tensor<32x16xf32>
    %er = tensor.empty() : tensor<16xf32>
    %fr = linalg.fill ins(%zero : f32) outs(%er : tensor<16xf32>) -> tensor<16xf32>
    %r = linalg.reduce {arith.addf} ins(%xi : tensor<32x16xf32>) outs(%fr : tensor<16xf32>) dimensions = [0]
    %next = tensor.insert_slice %r into %acc[%i, 0] [1, 16] [1, 1] : tensor<16xf32> into tensor<6x16xf32>
    scf.yield %next : tensor<6x16xf32>
  }
  return %s : tensor<6x16xf32>
}

// So is a gradient of which each device keeps a part, although the sum could be cut as well. That
// takes a whole gradient, so not under a budget.
// CHECK-LABEL: func.func @cut(
// CHECK: scf.for
// CHECK: linalg.matmul
// CHECK-NOT: dist.reduce_scatter
// CHECK: scf.yield
// CHECK: dist.reduce_scatter
// KEPT-LABEL: func.func @cut(
// KEPT: linalg.matmul
// KEPT: dist.reshard %{{.*}} "partial sums reduced
// KEPT: scf.yield
func.func @cut(%x: tensor<6x32x16xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>},
               %y: tensor<6x32x8xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}) -> (tensor<16x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x8xf32>
  %g0 = linalg.fill ins(%zero : f32) outs(%e : tensor<16x8xf32>) -> tensor<16x8xf32>
  %g = scf.for %i = %c0 to %c6 step %c1 iter_args(%acc = %g0) -> (tensor<16x8xf32>) {
    %xi = tensor.extract_slice %x[%i, 0, 0] [1, 32, 16] [1, 1, 1] : tensor<6x32x16xf32> to tensor<32x16xf32>
    %yi = tensor.extract_slice %y[%i, 0, 0] [1, 32, 8] [1, 1, 1] : tensor<6x32x8xf32> to tensor<32x8xf32>
    %et = tensor.empty() : tensor<16x32xf32>
    %xt = linalg.transpose ins(%xi : tensor<32x16xf32>) outs(%et : tensor<16x32xf32>) permutation = [1, 0]
    %eg = tensor.empty() : tensor<16x8xf32>
    %fg = linalg.fill ins(%zero : f32) outs(%eg : tensor<16x8xf32>) -> tensor<16x8xf32>
    %gi = linalg.matmul ins(%xt, %yi : tensor<16x32xf32>, tensor<32x8xf32>) outs(%fg : tensor<16x8xf32>) -> tensor<16x8xf32>
    %next = arith.addf %acc, %gi : tensor<16x8xf32>
    scf.yield %next : tensor<16x8xf32>
  }
  return %g : tensor<16x8xf32>
}

// So is a gradient that an iteration adds to block by block, as that of a weight whose columns are
// used one after the other.
// CHECK-LABEL: func.func @blocks(
// CHECK: scf.for
// CHECK-COUNT-2: linalg.matmul
// CHECK-NOT: dist.{{reduce_scatter|all_}}
// CHECK: scf.yield
// CHECK: dist.reduce_scatter
func.func @blocks(%x: tensor<6x32x16xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>},
                  %y: tensor<6x32x8xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}) -> (tensor<16x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x8xf32>
  %g0 = linalg.fill ins(%zero : f32) outs(%e : tensor<16x8xf32>) -> tensor<16x8xf32>
  %g = scf.for %i = %c0 to %c6 step %c1 iter_args(%acc = %g0) -> (tensor<16x8xf32>) {
    %xi = tensor.extract_slice %x[%i, 0, 0] [1, 32, 16] [1, 1, 1] : tensor<6x32x16xf32> to tensor<32x16xf32>
    %yi = tensor.extract_slice %y[%i, 0, 0] [1, 32, 3] [1, 1, 1] : tensor<6x32x8xf32> to tensor<32x3xf32>
    %zi = tensor.extract_slice %y[%i, 0, 3] [1, 32, 5] [1, 1, 1] : tensor<6x32x8xf32> to tensor<32x5xf32>
    %et = tensor.empty() : tensor<16x32xf32>
    %xt = linalg.transpose ins(%xi : tensor<32x16xf32>) outs(%et : tensor<16x32xf32>) permutation = [1, 0]
    %ey = tensor.empty() : tensor<16x3xf32>
    %fy = linalg.fill ins(%zero : f32) outs(%ey : tensor<16x3xf32>) -> tensor<16x3xf32>
    %gy = linalg.matmul ins(%xt, %yi : tensor<16x32xf32>, tensor<32x3xf32>) outs(%fy : tensor<16x3xf32>) -> tensor<16x3xf32>
    %py = tensor.pad %gy low[0, 0] high[0, 5] {
    ^bb0(%r: index, %c: index):
      tensor.yield %zero : f32
    } : tensor<16x3xf32> to tensor<16x8xf32>
    %first = arith.addf %acc, %py : tensor<16x8xf32>
    %ez = tensor.empty() : tensor<16x5xf32>
    %fz = linalg.fill ins(%zero : f32) outs(%ez : tensor<16x5xf32>) -> tensor<16x5xf32>
    %gz = linalg.matmul ins(%xt, %zi : tensor<16x32xf32>, tensor<32x5xf32>) outs(%fz : tensor<16x5xf32>) -> tensor<16x5xf32>
    %pz = tensor.pad %gz low[0, 3] high[0, 0] {
    ^bb0(%r: index, %c: index):
      tensor.yield %zero : f32
    } : tensor<16x5xf32> to tensor<16x8xf32>
    %next = arith.addf %first, %pz : tensor<16x8xf32>
    scf.yield %next : tensor<16x8xf32>
  }
  return %g : tensor<16x8xf32>
}
