// RUN: tessera explain %s | FileCheck %s
// RUN: tessera run %s --check=interpreter
// RUN: tessera run %s --check --backend stub --schedule-seed 3

// Of 6 iterations the last one moves %p for nobody, and the first one moves a constant %q: each is moved five times, in
// the loop both together.

// CHECK-DAG: exchange {{.*}} 64 on the wire x 4 trips
// CHECK: total: 6 collectives, 320 bytes on the wire

dist.process_mesh @m(shape = [4], dim_names = ["s"])
func.func @main(%x: tensor<4x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>})
    -> (tensor<4x8xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) {
  %zero = arith.constant dense<0.0> : tensor<4x8xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %unused, %sum, %last = scf.for %i = %c0 to %c6 step %c1 iter_args(%p = %x, %total = %x, %q = %zero)
      -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
    %t = math.tanh %p : tensor<4x8xf32>
    %u = arith.addf %total, %t : tensor<4x8xf32>
    %a = tensor.extract_slice %t[3, 0] [1, 8] [1, 1] : tensor<4x8xf32> to tensor<1x8xf32>
    %b = tensor.extract_slice %t[0, 0] [3, 8] [1, 1] : tensor<4x8xf32> to tensor<3x8xf32>
    %next = tensor.concat dim(0) %a, %b : (tensor<1x8xf32>, tensor<3x8xf32>) -> tensor<4x8xf32>
    %c = tensor.extract_slice %q[3, 0] [1, 8] [1, 1] : tensor<4x8xf32> to tensor<1x8xf32>
    %d = tensor.extract_slice %q[0, 0] [3, 8] [1, 1] : tensor<4x8xf32> to tensor<3x8xf32>
    %moved = tensor.concat dim(0) %c, %d : (tensor<1x8xf32>, tensor<3x8xf32>) -> tensor<4x8xf32>
    %v = arith.addf %moved, %u : tensor<4x8xf32>
    scf.yield %next, %u, %v : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
  }
  %y = arith.addf %sum, %last : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
