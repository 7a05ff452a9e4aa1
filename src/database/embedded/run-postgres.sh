#!/bin/sh
# Makes the database cluster if there is none, and runs Postgres until it ends or standard input closes. That happens however
# the process at the other end of it ends.
#
# run-postgres.sh CLUSTER ARCHIVE INITDB UID COMMAND…
#   CLUSTER  the folder of the cluster
#   ARCHIVE  an archive of an empty cluster
#   UID      the user to whom the cluster must belong
#   COMMAND  starts Postgres
cluster=$1 archive=$2 initdb=$3 uid=$4
shift 4

# Postgres recognizes another one in its folder by the number of its process, which means nothing in another container. So
# this script, Postgres and all its processes hold a lock of the kernel, too. macOS has no flock, and no containers.
# One call for the whole file system is faster than one for each of a thousand files; macOS does not have it.
sync_method=fsync
if [ "$(uname)" = Linux ]; then
  sync_method=syncfs
  exec 9<"${cluster%/*}"
  flock --nonblock --conflict-exit-code=75 9 || exit
  # The process that a killed Postgres left in this file has ended, and its number may belong to any other one. Postgres ignores
  # a number that it finds in this variable.
  PG_GRANDPARENT_PID=$(head -n 1 "$cluster/postmaster.pid" 2>/dev/null)
  export PG_GRANDPARENT_PID
  # Postgres would not start with an empty file, which a full disk leaves.
  [ -s "$cluster/postmaster.pid" ] || rm -f "$cluster/postmaster.pid"
  rm -f "$cluster"/.s.PGSQL.*.lock
fi

# The cluster gets its name when it is complete and on the disk, so an interrupted start leaves nothing that the next one could
# take for a database.
if [ ! -e "$cluster" ]; then
  rm -rf "$cluster.unfinished" &&
    mkdir -m 700 "$cluster.unfinished" &&
    tar -xzf "$archive" -C "$cluster.unfinished" --no-same-owner &&
    "$initdb" --sync-only --sync-method="$sync_method" -D "$cluster.unfinished" >/dev/null &&
    mv "$cluster.unfinished" "$cluster" || exit
fi
[ "$uid" = "$(id -u)" ] || chown -hR "$uid:$uid" "$cluster" || exit

exec 3<&0
"$@" </dev/null 3<&- &
postgres=$!
trap '' INT TERM HUP
# A Postgres that does not end, such as a frozen one, is killed; it recovers at the next start.
(
  read -r _
  kill -INT "$postgres"
  sleep 2
  kill -QUIT "$postgres"
  sleep 1
  kill -KILL "$postgres"
) <&3 9<&- >/dev/null 2>&1 &
wait "$postgres"
code=$?
kill -KILL $!
exit "$code"
