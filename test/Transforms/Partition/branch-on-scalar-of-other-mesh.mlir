// RUN: not tessera explain %s 2>&1 | FileCheck %s

// A branch over tensors of one mesh cannot be decided by a scalar of another.
// CHECK: branch-on-scalar-of-other-mesh.mlir:12:{{[0-9]+}}: error: 'scf.if' on mesh 'q' is controlled by a scalar that another mesh computes; reshard the tensor that it comes from
// CHECK-NOT: error
dist.process_mesh @p(shape = [2], dim_names = ["x"])
dist.process_mesh @q(shape = [2], dim_names = ["x"], process_ids = [2, 3])
func.func @main(%a: tensor<4xf32> {dist.sharding = #dist.sharding<@p, [replicate]>}, %b: tensor<4xf32> {dist.sharding = #dist.sharding<@q, [shard(0)]>}) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %e = tensor.extract %a[%c0] : tensor<4xf32>
  %c = arith.cmpf ogt, %e, %e : f32
  %r = scf.if %c -> tensor<4xf32> {
    %0 = math.tanh %b : tensor<4xf32>
    scf.yield %0 : tensor<4xf32>
  } else {
    scf.yield %b : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
