// RUN: tessera-opt %s --dist-insert-reshards --verify-diagnostics

dist.process_mesh @m(shape = [4], dim_names = ["x"])
// expected-error@+1 {{argument 'arg0' has no sharding; run dist-propagate or dist-search first}}
func.func @main(%a: tensor<8xf32>) { return }
