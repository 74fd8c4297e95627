// RUN: tessera-opt %s --dist-fuse-collectives="all-reduce=ready all-reduce-config=1" | FileCheck %s
// RUN: tessera-opt %s --dist-fuse-collectives="all-reduce=ready all-reduce-config=0" | FileCheck %s --check-prefix=EACH
// RUN: not tessera-opt %s --dist-fuse-collectives="all-reduce=ready" 2>&1 | FileCheck %s --check-prefix=CONFIG
// RUN: not tessera-opt %s --dist-fuse-collectives="all-gather=ready config=1" 2>&1 | FileCheck %s --check-prefix=GATHER

// Gradients of three layers, of which the last is computed first: a bucket is placed after its last operand.

// CONFIG: comm_fusion 'allreduce': mode ready needs config = one number of MiB, at least 0
// GATHER: comm_fusion 'allgather': mode ready is for all-reduce only

dist.process_mesh @m(shape = [4], dim_names = ["x"])

#partial = #dist.sharding<@m, [partial(avg)]>
#whole = #dist.sharding<@m, [replicate]>

// CHECK-LABEL: func.func @backward(
// CHECK: %[[THIRD:.*]] = math.exp
// CHECK: %[[SECOND:.*]] = math.tanh
// CHECK: dist.all_reduce %[[THIRD]], %[[SECOND]] over
// CHECK: %[[FIRST:.*]] = math.sin
// CHECK: dist.all_reduce %[[FIRST]] over
// EACH-LABEL: func.func @backward(
// EACH: math.exp
// EACH: dist.all_reduce
// EACH: math.tanh
// EACH: dist.all_reduce
// EACH: math.sin
// EACH: dist.all_reduce
func.func @backward(%a: tensor<100000xf32>) -> (tensor<100000xf32>, tensor<100000xf32>, tensor<100000xf32>)
    attributes {dist.view = "local"} {
  %third = math.exp %a : tensor<100000xf32>
  %second = math.tanh %third : tensor<100000xf32>
  %first = math.sin %second : tensor<100000xf32>
  %0 = dist.all_reduce %first over @m ["x"] reduction = avg
    {dist.shardings = [#whole], sources = [#partial], targets = [#whole], global_types = [tensor<100000xf32>]} : tensor<100000xf32>
  %1 = dist.all_reduce %second over @m ["x"] reduction = avg
    {dist.shardings = [#whole], sources = [#partial], targets = [#whole], global_types = [tensor<100000xf32>]} : tensor<100000xf32>
  %2 = dist.all_reduce %third over @m ["x"] reduction = avg
    {dist.shardings = [#whole], sources = [#partial], targets = [#whole], global_types = [tensor<100000xf32>]} : tensor<100000xf32>
  return %0, %1, %2 : tensor<100000xf32>, tensor<100000xf32>, tensor<100000xf32>
}
