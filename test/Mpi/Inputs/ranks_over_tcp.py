"""ranks_over_tcp.py N FILE COMMAND...: starts N ranks that meet through the file; fails when one of them does."""

import os
import subprocess
import sys

count, place, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
ranks = []
for rank in range(count):
    environment = dict(os.environ, TESSERA_RANK=str(rank), TESSERA_SIZE=str(count), TESSERA_RENDEZVOUS=f"file:{place}")
    ranks.append(subprocess.Popen(command, env=environment))
sys.exit(max(each.wait(timeout=200) for each in ranks))
