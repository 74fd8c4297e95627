// RUN: tessera-opt %s --tessera-pipeline | FileCheck %s
// RUN: tessera explain %s | FileCheck %s --check-prefix=BYTES
// RUN: tessera run %s --check

// The owner of the rows writes them: it reads and writes as many elements of its part as the update has,
// and nothing is sent. The index is clamped in the whole dimension, which five devices do not divide.

dist.process_mesh @line(shape = [5], dim_names = ["s"])

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[CACHE:.*]]: tensor<4x8xf32>
// CHECK-NOT: dist.all_gather
// CHECK: %[[NEAR:.*]] = tensor.extract_slice %[[CACHE]][%[[AT:.*]], 0] [2, 8] [1, 1]
// CHECK: %[[NEW:.*]] = linalg.generic
// CHECK: tensor.insert_slice %[[NEW]] into %[[CACHE]][%[[AT]], 0] [2, 8] [1, 1]
// BYTES: total: 0 collectives, 0 bytes on the wire
func.func @main(%cache: tensor<17x8xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
                %rows: tensor<2x8xf32> {dist.sharding = #dist.sharding<@line, [replicate]>},
                %at: tensor<i64> {dist.sharding = #dist.sharding<@line, [replicate]>, dist.range = [-3, 20]})
    -> (tensor<17x8xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %scalar = tensor.extract %at[] : tensor<i64>
  %index = arith.index_cast %scalar : i64 to index
  %y = tensor.insert_slice %rows into %cache[%index, 0] [2, 8] [1, 1] : tensor<2x8xf32> into tensor<17x8xf32>
  return %y : tensor<17x8xf32>
}
