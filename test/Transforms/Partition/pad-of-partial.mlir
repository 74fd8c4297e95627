// RUN: tessera-opt %s --dist-insert-reshards --dist-plan-reshards --dist-partition --interpret -o /dev/null | FileCheck %s

// The pad of a cut dimension forwards contributions over "y": they are added once, after it.
dist.process_mesh @m(shape = [2, 2], dim_names = ["x", "y"])

// CHECK: result0 : tensor<6xi32> = [0, 10, 20, 30, 0, 0]
func.func @main() -> (tensor<6xi32> {dist.sharding = #dist.sharding<@m, [replicate, replicate]>}) {
  %a = arith.constant {dist.shardings = [#dist.sharding<@m, [replicate, replicate]>]} dense<[10, 20, 30]> : tensor<3xi32>
  %parts = dist.reshard %a to #dist.sharding<@m, [shard(0), partial(sum)]> {dist.shardings = [#dist.sharding<@m, [shard(0), partial(sum)]>]} : tensor<3xi32>
  %zero = arith.constant 0 : i32
  %0 = tensor.pad %parts low[1] high[2] {
  ^bb0(%i: index):
    tensor.yield %zero : i32
  } {dist.op_sharding = #dist.op_sharding<@m, factors = [["x"]], forwards = [sum("y") from [0]]>, dist.shardings = [#dist.sharding<@m, [shard(0), partial(sum)]>]} : tensor<3xi32> to tensor<6xi32>
  return %0 : tensor<6xi32>
}
