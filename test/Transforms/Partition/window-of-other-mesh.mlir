// RUN: tessera-opt %s --dist-propagate --dist-insert-reshards --dist-plan-reshards --dist-partition --interpret -o /dev/null | FileCheck %s

// Windows that another mesh sends are filled where they are read.
dist.process_mesh @a(shape = [2], dim_names = ["s"])
dist.process_mesh @b(shape = [2], dim_names = ["s"], process_ids = [2, 3])

// CHECK: result0 : tensor<6xi32> = [7, 10, 20, 30, 7, 7]
func.func @main() -> (tensor<6xi32> {dist.sharding = #dist.sharding<@b, [shard(0)]>}) {
  %x = arith.constant {dist.shardings = [#dist.sharding<@a, [replicate]>]} dense<[10, 20, 30]> : tensor<3xi32>
  %cut = dist.reshard %x to #dist.sharding<@a, [shard(0)]> : tensor<3xi32>
  %windows = dist.reshard %cut to #dist.sharding<@b, dims = [["s"]], windows = [(0, 3, -1, 3)]> : tensor<3xi32>
  %seven = arith.constant 7 : i32
  %0 = tensor.pad %windows low[1] high[2] {
  ^bb0(%i: index):
    tensor.yield %seven : i32
  } : tensor<3xi32> to tensor<6xi32>
  return %0 : tensor<6xi32>
}
