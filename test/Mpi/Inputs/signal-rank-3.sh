# signal-rank-3.sh SIGNAL FILE COMMAND...: executes the command; what rank 0 prints goes to the file, and when that has a step, rank 3 gets
# the signal.
signal=$1
file=$2
shift 2
rank=${OMPI_COMM_WORLD_RANK-$PMI_RANK}
[ "$rank" = 0 ] && exec "$@" > "$file"
[ "$rank" = 3 ] && (
  until grep -q '^step' "$file" 2> /dev/null; do
    sleep 0.1
    kill -0 $$ || exit
  done
  kill -"$signal" $$
) &
exec "$@"
