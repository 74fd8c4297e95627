// RUN: tessera explain %s --function known --json - | FileCheck %s
// RUN: tessera explain %s --function unknown --json - | FileCheck %s
// RUN: tessera explain %s --function until --json - | FileCheck %s
// RUN: tessera explain %s --function unknown --json - | FileCheck %s --check-prefix=BYTES

// Times assume four iterations of a loop with unknown trip count; bytes are those of one, as a lower bound.
// CHECK: "modelled_compute_seconds": 6.5105
// CHECK: "modelled_seconds": 6.0491
// BYTES: "bounded": false
// BYTES: "trips": 1,

dist.process_mesh @line(shape = [4], dim_names = ["d"])

func.func @known(%x: tensor<512x512xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>},
                 %w: tensor<512x512xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
                 %n: tensor<1xi32>)
    -> (tensor<512x512xf32> {dist.sharding = #dist.sharding<@line, [replicate]>}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant dense<0.0> : tensor<512x512xf32>
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %zero) -> tensor<512x512xf32> {
    %p = linalg.matmul ins(%x, %w : tensor<512x512xf32>, tensor<512x512xf32>) outs(%a : tensor<512x512xf32>) -> tensor<512x512xf32>
    %s = math.tanh %p : tensor<512x512xf32>
    %t = dist.shard_tensor %s, #dist.sharding<@line, [replicate]> : tensor<512x512xf32>
    scf.yield %t : tensor<512x512xf32>
  }
  return %r : tensor<512x512xf32>
}

func.func @unknown(%x: tensor<512x512xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>},
                   %w: tensor<512x512xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
                   %n: tensor<1xi32>)
    -> (tensor<512x512xf32> {dist.sharding = #dist.sharding<@line, [replicate]>}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : tensor<512x512xf32>
  %bound = tensor.extract %n[%c0] : tensor<1xi32>
  %end = arith.index_cast %bound : i32 to index
  %r = scf.for %i = %c0 to %end step %c1 iter_args(%a = %zero) -> tensor<512x512xf32> {
    %p = linalg.matmul ins(%x, %w : tensor<512x512xf32>, tensor<512x512xf32>) outs(%a : tensor<512x512xf32>) -> tensor<512x512xf32>
    %s = math.tanh %p : tensor<512x512xf32>
    %t = dist.shard_tensor %s, #dist.sharding<@line, [replicate]> : tensor<512x512xf32>
    scf.yield %t : tensor<512x512xf32>
  }
  return %r : tensor<512x512xf32>
}

func.func @until(%x: tensor<512x512xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>},
                 %w: tensor<512x512xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
                 %n: tensor<1xi32>)
    -> (tensor<512x512xf32> {dist.sharding = #dist.sharding<@line, [replicate]>}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : tensor<512x512xf32>
  %bound = tensor.extract %n[%c0] : tensor<1xi32>
  %end = arith.index_cast %bound : i32 to index
  %r:2 = scf.while (%a = %zero, %i = %c0) : (tensor<512x512xf32>, index) -> (tensor<512x512xf32>, index) {
    %more = arith.cmpi slt, %i, %end : index
    scf.condition(%more) %a, %i : tensor<512x512xf32>, index
  } do {
  ^bb0(%a: tensor<512x512xf32>, %i: index):
    %p = linalg.matmul ins(%x, %w : tensor<512x512xf32>, tensor<512x512xf32>) outs(%a : tensor<512x512xf32>) -> tensor<512x512xf32>
    %s = math.tanh %p : tensor<512x512xf32>
    %t = dist.shard_tensor %s, #dist.sharding<@line, [replicate]> : tensor<512x512xf32>
    %next = arith.addi %i, %c1 : index
    scf.yield %t, %next : tensor<512x512xf32>, index
  }
  return %r#0 : tensor<512x512xf32>
}
