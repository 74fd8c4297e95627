// RUN: tessera explain %s | FileCheck %s
// RUN: tessera explain %s --json - | FileCheck %s --check-prefix=JSON
// RUN: tessera explain %s --json %t.a && tessera explain %s --json %t.b && cmp %t.a %t.b

dist.process_mesh @m(shape = [4], dim_names = ["x"])
// CHECK: mesh @m x=4, 4 devices
// CHECK: all_reduce {{.*}} 84 B, 126 on the wire
// CHECK: total: 1 collective, 126 bytes on the wire per device
// JSON: "name": "x"
// JSON: "collective_count_total": 1
// JSON: "bounded": true
// JSON: "bytes": 84
// JSON: "group_size": 4
// JSON: "kind": "all_reduce"
// JSON: "messages": 6
// JSON: "version": 1
// JSON: "wire_bytes_total": 126
func.func @main(%x: tensor<7x5xf32> {dist.name = "x", dist.sharding = #dist.sharding<@m, [shard(1)]>},
                %w: tensor<5x3xf32>) -> (tensor<7x3xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}) {
  %z = arith.constant dense<0.0> : tensor<7x3xf32>
  %0 = linalg.matmul ins(%x, %w : tensor<7x5xf32>, tensor<5x3xf32>) outs(%z : tensor<7x3xf32>) -> tensor<7x3xf32>
  return %0 : tensor<7x3xf32>
}
