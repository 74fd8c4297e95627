// RUN: not tessera-opt %s --dist-fuse-collectives="all-reduce=index config=35,20" 2>&1 | FileCheck %s --check-prefix=ORDER
// RUN: not tessera-opt %s --dist-fuse-collectives="all-reduce=index config=-1,20" 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not tessera-opt %s --dist-fuse-collectives="all-gather=index config=1" 2>&1 | FileCheck %s --check-prefix=GATHER
// RUN: not tessera-opt %s --dist-fuse-collectives="all-reduce=size config=0" 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: not tessera-opt %s --dist-fuse-collectives="all-reduce=all" 2>&1 | FileCheck %s --check-prefix=MODE
// RUN: not tessera-opt %s --dist-fuse-collectives="all-reduce=index all-gather=size config=1" 2>&1 | FileCheck %s --check-prefix=SHARED
// RUN: not tessera-opt %s --dist-fuse-collectives="all-reduce-config=16" 2>&1 | FileCheck %s --check-prefix=AUTO
// RUN: not tessera-opt %s --dist-fuse-collectives="config=16" 2>&1 | FileCheck %s --check-prefix=NOBODY
// RUN: not tessera explain %s --comm-fusion "all-reduce=index config=x" 2>&1 | FileCheck %s --check-prefix=TEXT
// RUN: tessera-opt %s --dist-fuse-collectives="all-reduce=size all-reduce-config=9000000000000000000 all-gather=size all-gather-config=1" 2>&1 | FileCheck %s --check-prefix=OWN

// ORDER: comm_fusion 'allreduce': mode index needs ascending, unique indices >= 0, found 20
// NEGATIVE: comm_fusion 'allreduce': mode index needs ascending, unique indices >= 0, found -1
// GATHER: comm_fusion 'allgather': mode index is for all-reduce only
// SIZE: comm_fusion 'allreduce': mode size needs config = one positive number of MiB
// MODE: comm_fusion 'allreduce': unknown mode 'all'; expected one of off, auto, bucket, size, ready, index
// SHARED: comm_fusion 'allgather': config applies to 'allreduce' too; give each kind its own
// AUTO: comm_fusion 'allreduce': mode auto takes no config
// NOBODY: comm_fusion 'config': no kind has mode size, ready or index
// TEXT: error: comm-fusion: 'all-reduce=index config=x' is not a list of options
// OWN-NOT: comm_fusion
// OWN: func.func @main() {
func.func @main() { return }
