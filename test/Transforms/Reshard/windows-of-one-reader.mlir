// RUN: tessera explain %s --function permuted | FileCheck %s
// RUN: tessera run %s --function permuted --check=interpreter | FileCheck %s --check-prefix=VALUE

// An op that reads several blocks gets them by one exchange, whose busiest device sends one block: fewer bytes than
// the union of the blocks, which each device would receive.
// CHECK: exchange {{.*}} 4096 on the wire
// CHECK: total: 1 collective, 4096 bytes
// VALUE: check result0 ok equal

dist.process_mesh @m(shape = [4], dim_names = ["x"])

func.func @permuted(%a: tensor<64x64xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) -> (tensor<64x64xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) {
  %0 = tensor.extract_slice %a[32, 0] [16, 64] [1, 1] : tensor<64x64xf32> to tensor<16x64xf32>
  %1 = tensor.extract_slice %a[0, 0] [16, 64] [1, 1] : tensor<64x64xf32> to tensor<16x64xf32>
  %2 = tensor.extract_slice %a[48, 0] [16, 64] [1, 1] : tensor<64x64xf32> to tensor<16x64xf32>
  %3 = tensor.extract_slice %a[16, 0] [16, 64] [1, 1] : tensor<64x64xf32> to tensor<16x64xf32>
  %r = tensor.concat dim(0) %0, %1, %2, %3 : (tensor<16x64xf32>, tensor<16x64xf32>, tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}
