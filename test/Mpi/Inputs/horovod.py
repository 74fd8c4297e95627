"""Calls of tessera.horovod under an MPI launcher."""
import numpy as np
import tessera.horovod as hvd
hvd.init()
x = np.arange(3, dtype=np.float32) + hvd.rank()
print(hvd.rank(), hvd.size(), hvd.local_rank(), hvd.mpi_enabled(), hvd.allreduce(x, name="x").tolist(), hvd.allgather(np.full(hvd.rank() + 1, hvd.rank())).tolist(), flush=True)
