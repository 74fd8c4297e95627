// RUN: tessera-opt %s --dist-normalize | FileCheck %s
// RUN: tessera-opt %s --tessera-pipeline --interpret="poison=high" -o /dev/null
// RUN: tessera explain %s | FileCheck %s --check-prefix=BYTES
// RUN: tessera run %s --check | FileCheck %s --check-prefix=VALUE

// 21 pairs over four devices are 6, 6, 6 and 3, which are 12, 12, 12 and 6 elements merged, but 41
// elements are 11, 11, 11 and 8. With pairs padded to 24 both reshapes are cut evenly, and a few
// elements go to a neighbor.

dist.process_mesh @line(shape = [4], dim_names = ["s"])

// CHECK-LABEL: func.func @main(
// CHECK: tensor.pad %arg0 low[0, 0] high[3, 0]
// CHECK: tensor.collapse_shape {{.*}} : tensor<24x2xf32> into tensor<48xf32>
// CHECK: tensor.extract_slice {{.*}}[0] [41] [1] : tensor<48xf32>
// CHECK: tensor.pad %arg1 low[0] high[6]
// CHECK: tensor.expand_shape {{.*}} output_shape [24, 2]
// CHECK: tensor.extract_slice {{.*}}[0, 0] [21, 2] [1, 1]
// A device has elements 12 i to 12 i + 11 and needs 11 i to 11 i + 10, and the other way round.
// BYTES: exchange {{.*}} 12 on the wire
// BYTES: exchange {{.*}} 12 on the wire
// BYTES: total: 2 collectives
// VALUE: check {{.*}} ok
// VALUE: check {{.*}} ok
func.func @main(%x: tensor<21x2xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
                %y: tensor<42xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<41xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>},
        tensor<21x2xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %merged = tensor.collapse_shape %x [[0, 1]] : tensor<21x2xf32> into tensor<42xf32>
  %part = tensor.extract_slice %merged[0] [41] [1] : tensor<42xf32> to tensor<41xf32>
  %a = math.exp %part : tensor<41xf32>
  %split = tensor.expand_shape %y [[0, 1]] output_shape [21, 2] : tensor<42xf32> into tensor<21x2xf32>
  %b = math.exp %split : tensor<21x2xf32>
  return %a, %b : tensor<41xf32>, tensor<21x2xf32>
}
