// RUN: tessera-opt %s --tessera-pipeline | FileCheck %s
// RUN: tessera explain %s | FileCheck %s --check-prefix=BYTES
// RUN: tessera run %s --check

// Uneven parts of two cut operands: one exchange of the missing elements. The first has rows 0-1, 2-3, 4 and none, the
// second 0-3, 4-7, 8-11 and 12-14; the result has 5 rows per device. Device 1 needs rows 0-4 of the second and has 4-7: it
// lacks four rows, device 0 three of the first, device 2 needs 5-9 and has 8-11: three, device 3 needs 10-14 and has
// 12-14: two. But device 0 sends four, and device 1 sends two of the first and three of the second: five rows of 16 bytes.

dist.process_mesh @line(shape = [4], dim_names = ["s"])

// CHECK: dist.exchange %{{.*}}, %{{.*}} from
// CHECK-NOT: dist.exchange
// BYTES: total: 1 collective, 80 bytes on the wire
func.func @main(%a: tensor<5x4xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
                %b: tensor<15x4xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<20x4xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %y = tensor.concat dim(0) %a, %b : (tensor<5x4xf32>, tensor<15x4xf32>) -> tensor<20x4xf32>
  return %y : tensor<20x4xf32>
}
