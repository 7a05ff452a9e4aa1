#!/bin/sh
# Makes the database cluster if there is none, and runs Postgres until it ends or standard input closes.
#
# run-postgres.sh CLUSTER PACKAGE PORT RESERVED
#   CLUSTER   the folder of the cluster
#   PACKAGE   the folder of the programs of Postgres
#   PORT      a part of the name of the socket
#   RESERVED  how many connections are reserved for the Plant Store
cluster=$1 package=$2 port=$3 reserved=$4

refuse() {
  echo "$1" >&2
  exit 1
}
for program in tar gzip; do
  command -v "$program" >/dev/null || refuse "it needs the program $program: install the package of that name"
done

# These settings are not in postgresql.conf, so that a new version of the service may change them.
set -- "$package/bin/postgres" -D "$cluster" -c port="$port" -c shared_buffers=32MB
# A relative path, because that of the cluster may be too long for a socket.
set -- "$@" -c listen_addresses= -c unix_socket_directories=. -c unix_socket_permissions=0700
set -- "$@" -c superuser_reserved_connections="$reserved" -c max_connections="$((reserved + 100))"
# The service reads the messages from standard error.
set -- "$@" -c logging_collector=off -c log_destination=stderr
# Errors are reported to the client that caused them, and the text of statements may contain data of users.
set -- "$@" -c log_line_prefix= -c log_checkpoints=off -c log_min_messages=log -c log_min_error_statement=panic

if [ "$(uname)" = Linux ]; then
  # Postgres recognizes another one in its folder by the number of its process, which means nothing in another container. So
  # this script, Postgres and all its processes hold a lock of the kernel, too.
  exec 9<"${cluster%/*}"
  command -v flock >/dev/null || refuse 'it needs the program flock: install the package util-linux'
  pid=$(head -n 1 "$cluster/postmaster.pid" 2>/dev/null)
  if ! flock --nonblock 9; then
    # To end Postgres, its service must be ended: the parent of the shell that is its parent.
    service=
    {
      read -r _ name _ shell _ <"/proc/$pid/stat" && [ "$name" = '(postgres)' ] &&
        read -r _ _ _ service _ <"/proc/$shell/stat"
    } 2>/dev/null
    # In the words of Postgres.
    refuse "Is another postmaster (PID $service) running?"
  fi
  # The process that a killed Postgres left in its file has ended, and its number may belong to any other one. Postgres ignores
  # a number that it finds in this variable. It would not start with a file without a number, which a full disk may leave.
  case $pid in
    '' | *[!0-9-]*) rm -f "$cluster/postmaster.pid" ;;
    *) export PG_GRANDPARENT_PID="$pid" ;;
  esac
  rm -f "$cluster"/.s.PGSQL.*.lock
else
  # macOS has no flock, and no containers. It leaves what is written by default in the cache of the disk.
  set -- "$@" -c wal_sync_method=fsync_writethrough
fi

set -- sh "${0%/*}/run-until-input-ends.sh" "$@"
if [ "$(id -u)" = 0 ]; then
  as_ordinary_user=${0%/*}/as-ordinary-user.sh
  sh "$as_ordinary_user" true 2>/dev/null ||
    refuse 'it refuses to run as root, and setpriv cannot change the user here: start as an ordinary user'
  set -- sh "$as_ordinary_user" "$@"
fi
# The cluster gets its name when it is complete and on the disk, so an interrupted start leaves nothing that the next one could
# take for a database.
if [ ! -e "$cluster" ]; then
  new=$cluster.unfinished
  rm -rf "$new" && mkdir -m 700 "$new" &&
    tar -xzf "$package/empty-cluster.tgz" -C "$new" --no-same-owner &&
    sync -f "$new" && mv "$new" "$cluster" && sync -f "$cluster" || exit
fi
# Not the folder that a link names: another user may have made the link.
if [ ! -L "$cluster" ]; then
  # Without a right of root's, this fails for a folder that root has given away, which is closed already.
  chmod 700 "$cluster" 2>/dev/null
  if [ "$(id -u)" = 0 ] && [ -O "$cluster" ]; then
    chown -hR 65534:65534 "$cluster" 2>/dev/null ||
      refuse 'root may not give the folder to the user nobody here: start as an ordinary user'
  fi
fi

exec "$@"
