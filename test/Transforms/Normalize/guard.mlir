// RUN: tessera-opt %s --dist-guard --verify-diagnostics --split-input-file --allow-unregistered-dialect

// expected-error@+1 {{argument 0 has type 'tensor<4x?xf32>': dimension 1 is dynamic; shapes must be static, give it an extent}}
func.func @f(%x: tensor<4x?xf32>) { return }

// -----
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{'user.op' is unregistered}}
  "user.op"(%x) : (tensor<4xf32>) -> ()
  return
}

// -----
// expected-error@+1 {{'g' has no body; external functions are not supported}}
func.func private @g(tensor<4xf32>) -> tensor<4xf32>

// -----
// expected-error@+1 {{argument 0 has type 'tensor<*xf32>' without a rank}}
func.func @f(%x: tensor<*xf32>) { return }

// -----
// expected-error@+1 {{argument 0 has type 'tensor<4xi7>'; element types are}}
func.func @f(%x: tensor<4xi7>) { return }

// -----
// expected-error@+1 {{argument 0 has type 'memref<4xf32>'; expected a tensor or a scalar}}
func.func @f(%x: memref<4xf32>) { return }

// -----
// expected-error@+1 {{argument 0 has type 'tensor<4xui8>'; element types are}}
func.func @f(%x: tensor<4xui8>) { return }

// -----
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @collective(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{'dist.all_reduce' is not allowed in the global view, where values have no device; write dist.reshard}}
  %0 = dist.all_reduce %x over @m ["x"] reduction = sum : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @coordinate() -> tensor<index> {
  // expected-error@+1 {{'dist.axis_index' is not allowed in the global view}}
  %0 = dist.axis_index over @m ["x"] : index
  %1 = tensor.from_elements %0 : tensor<index>
  return %1 : tensor<index>
}

// -----
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @local(%x: tensor<8xf32>) -> tensor<8xf32> attributes {dist.view = "local", dist.mesh = @m} {
  %0 = dist.all_reduce %x over @m ["x"] reduction = sum : tensor<8xf32>
  return %0 : tensor<8xf32>
}
