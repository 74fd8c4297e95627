// Values inside a kernel take no memory, however far apart its ops are: a gradient in gather form
// and its only reader, the update, are one kernel. Values sent in between do take memory. The
// estimate equals the arena in bytes.
// RUN: rm -rf %t && split-file %s %t
// RUN: tessera explain %t/one.mlir --mode dynamic_programming --json - | FileCheck %s --check-prefix=ONE
// RUN: tessera explain %t/sent.mlir --mode dynamic_programming --json - | FileCheck %s --check-prefix=SENT

//--- one.mlir
// Two tables of 1 MiB on each of two devices, 16 rows and their numbers; results overwrite the tables.
// ONE: "peak_memory_bytes": 2099264
// ONE: "memory": 2099264
#whole = affine_map<(r, c, i) -> (r, c)>
#rows = affine_map<(r, c, i) -> (i, c)>
#numbers = affine_map<(r, c, i) -> (i)>
dist.process_mesh @line(shape = [2], dim_names = ["d"])
#columns = #dist.sharding<@line, [shard(1)]>
func.func @one_kernel(%t0: tensor<8192x64xf32> {dist.sharding = #columns}, %t1: tensor<8192x64xf32> {dist.sharding = #columns},
                      %g: tensor<16x64xf32> {dist.sharding = #columns}, %ids: tensor<16xi32> {dist.sharding = #dist.sharding<@line, [replicate]>})
    -> (tensor<8192x64xf32> {dist.feeds = 0}, tensor<8192x64xf32> {dist.feeds = 1}) {
  %zero = arith.constant dense<0.0> : tensor<8192x64xf32>
  %d0 = linalg.generic {indexing_maps = [#rows, #numbers, #whole], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%g, %ids : tensor<16x64xf32>, tensor<16xi32>) outs(%zero : tensor<8192x64xf32>) {
  ^bb0(%x: f32, %id: i32, %sum: f32):
    %r = linalg.index 0 : index
    %row = arith.index_cast %r : index to i32
    %is = arith.cmpi eq, %row, %id : i32
    %more = arith.addf %sum, %x : f32
    %next = arith.select %is, %more, %sum : f32
    linalg.yield %next : f32
  } -> tensor<8192x64xf32>
  %d1 = linalg.generic {indexing_maps = [#rows, #numbers, #whole], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%g, %ids : tensor<16x64xf32>, tensor<16xi32>) outs(%zero : tensor<8192x64xf32>) {
  ^bb0(%x: f32, %id: i32, %sum: f32):
    %r = linalg.index 0 : index
    %row = arith.index_cast %r : index to i32
    %is = arith.cmpi eq, %row, %id : i32
    %more = arith.addf %sum, %x : f32
    %next = arith.select %is, %more, %sum : f32
    linalg.yield %next : f32
  } -> tensor<8192x64xf32>
  %u0 = arith.subf %t0, %d0 : tensor<8192x64xf32>
  %u1 = arith.subf %t1, %d1 : tensor<8192x64xf32>
  return %u0, %u1 : tensor<8192x64xf32>, tensor<8192x64xf32>
}

//--- sent.mlir
// The sum over the devices is not part of a kernel: a table of 2 MiB, a gradient of 2 MiB, and 6
// MiB of its operands.
// SENT: "peak_memory_bytes": 10485760
// SENT: "memory": 10485760
dist.process_mesh @line(shape = [2], dim_names = ["d"])
#whole = #dist.sharding<@line, [replicate]>
func.func @sent(%t: tensor<512x1024xf32> {dist.sharding = #whole}, %a: tensor<512x2048xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>},
                %b: tensor<2048x1024xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<512x1024xf32> {dist.feeds = 0}) {
  %zero = arith.constant dense<0.0> : tensor<512x1024xf32>
  %c = linalg.matmul ins(%a, %b : tensor<512x2048xf32>, tensor<2048x1024xf32>) outs(%zero : tensor<512x1024xf32>) -> tensor<512x1024xf32>
  %u = arith.subf %t, %c : tensor<512x1024xf32>
  return %u : tensor<512x1024xf32>
}
