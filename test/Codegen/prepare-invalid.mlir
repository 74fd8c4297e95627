// RUN: tessera-opt %s --codegen-prepare --split-input-file --verify-diagnostics

// expected-error @below {{argument 1 is 'f32'; arguments and results must be tensors}}
func.func @scalar(%x: tensor<4xf32>, %y: f32) attributes {dist.view = "local"} {
  return
}

// -----

// expected-error @below {{argument 0 is 'tensor<?xf32>'; shapes must be static}}
func.func @dynamic(%x: tensor<?xf32>) attributes {dist.view = "local"} {
  return
}
