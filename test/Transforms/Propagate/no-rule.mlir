// RUN: tessera-opt %s --tessera-pipeline="compile-to=propagated" --verify-diagnostics

// An op without a sharding rule is replicated, with a remark that has its bytes.
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @main(%x: tensor<8xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %p: f32) -> tensor<9xf32> {
  // expected-remark@+1 {{'tensor.pad' has no sharding rule: operands and results are replicated, 68 bytes per device}}
  %0 = tensor.pad %x low[0] high[1] {
  ^bb0(%i: index):
    %v = arith.index_cast %i : index to i32
    %f = arith.sitofp %v : i32 to f32
    tensor.yield %f : f32
  } : tensor<8xf32> to tensor<9xf32>
  return %0 : tensor<9xf32>
}
