// RUN: tessera-opt %s --dist-autodiff="wrt=0 seed=argument" | FileCheck %s
// RUN: tessera-opt %s --dist-autodiff="wrt=0 seed=argument name=main_grad" --dist-normalize | FileCheck %s --check-prefix=NORMAL

// An argument without an annotation is whole on both meshes; its later cotangent moves to the mesh of the first.
// CHECK-LABEL: func.func @main_grad
// CHECK: dist.reshard %{{.*}} to #dist.sharding<@
// CHECK: arith.addf
// NORMAL: func.func @main_grad
dist.process_mesh @m(shape = [2], dim_names = ["x"])
dist.process_mesh @n(shape = [3], dim_names = ["y"], process_ids = [2, 3, 4])
func.func @main(%w: tensor<5xf32>, %a: tensor<5xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>},
                %b: tensor<5xf32> {dist.sharding = #dist.sharding<@n, [shard(0)]>}) -> (tensor<5xf32>, tensor<5xf32>) {
  %0 = arith.mulf %w, %a : tensor<5xf32>
  %1 = arith.mulf %w, %b : tensor<5xf32>
  return %0, %1 : tensor<5xf32>, tensor<5xf32>
}
