#!/bin/sh
# Makes the database cluster if there is none, and runs Postgres until it ends or standard input closes.
#
# run-postgres.sh CLUSTER PACKAGE PORT RESERVED SERVICE
#   CLUSTER   the folder of the cluster
#   PACKAGE   the folder of the programs of Postgres
#   PORT      a part of the name of the socket
#   RESERVED  how many connections are reserved for the Plant Store
#   SERVICE   the process that runs this
cluster=$1 package=$2 port=$3 reserved=$4 service=$5 system=$(uname)

refuse() {
  echo "$1" >&2
  exit 1
}

# Postgres recognizes another one in its folder by the number of its process, which means nothing in another container. So this
# script, Postgres and all its processes hold a lock of the kernel, too. macOS has no flock, and no containers.
lock() {
  [ "$system" = Linux ] || return 0
  exec 9<"$1"
  flock --nonblock 9 && return
  # Any other exit code is a failure of flock, which it has reported.
  [ $? = 1 ] || exit 1
  refuse "Is another postmaster ($(find_holder)) running?" # The words of Postgres.
}

# Prints the process to end: that of the service, which is the parent of the shell that is the parent of Postgres. If that
# service was killed, the shell has another parent than the one in its arguments, and Postgres itself is the process.
find_holder() {
  {
    pid=$(head -n 1 "$cluster/postmaster.pid") && read -r _ name _ shell _ <"/proc/$pid/stat" && [ "$name" = '(postgres)' ] &&
      read -r _ _ _ parent _ <"/proc/$shell/stat" || return
    case " $(tr '\0' ' ' <"/proc/$shell/cmdline") " in
      *" $parent "*) echo "PID $parent" ;;
      *) echo "left $pid" ;;
    esac
  } 2>/dev/null
}

# Root runs Postgres as `nobody`.
give_to_nobody() {
  if [ "$(id -u)" = 0 ] && [ -O "$1" ] && ! chown -hR 65534:65534 "$1" 2>/dev/null; then
    refuse 'root may not give the folder to the user nobody here: start as an ordinary user'
  fi
}

# These settings are not in postgresql.conf, so that a new version of the service may change them.
set -- "$package/bin/postgres" -D "$cluster" -c port="$port" -c shared_buffers=16MB
# A relative path, because that of the cluster may be too long for a socket.
set -- "$@" -c listen_addresses= -c unix_socket_directories=. -c unix_socket_permissions=0700
set -- "$@" -c superuser_reserved_connections="$reserved" -c max_connections="$((reserved + 100))"
# The service reads the messages from standard error.
set -- "$@" -c logging_collector=off -c log_destination=stderr
# Errors are reported to the client that caused them, and the text of statements may contain data of users.
set -- "$@" -c log_line_prefix= -c log_checkpoints=off -c log_min_messages=log -c log_min_error_statement=panic

# macOS leaves what is written by default in the cache of the disk.
[ "$system" = Linux ] || set -- "$@" -c wal_sync_method=fsync_writethrough

set -- sh "${0%/*}/run-until-input-ends.sh" "$service" "$@"
[ "$(id -u)" != 0 ] || set -- sh "${0%/*}/as-ordinary-user.sh" "$@"

# The cluster gets its name when it is complete and on the disk, so an interrupted start leaves nothing that the next one could
# take for a database.
[ -e "$cluster" ] || lock "${cluster%/*}"
# Again: another start may have made it before this one had the lock.
if [ ! -e "$cluster" ]; then
  new=$cluster.unfinished
  # On a full disk, what was unpacked would leave no space for anything.
  trap 'rm -rf "$new"' EXIT
  rm -rf "$new" && mkdir -m 700 "$new" &&
    tar -xzf "$package/empty-cluster.tgz" -C "$new" --no-same-owner && give_to_nobody "$new" &&
    sync -f "$new" && mv "$new" "$cluster" && sync -f "$cluster" || exit
  trap - EXIT
fi
lock "$cluster"
# Not the folder that a link names: another user may have made the link.
if [ ! -L "$cluster" ]; then
  # Without a right of root's, this fails for a folder that root has given away, which is closed already.
  chmod 700 "$cluster" 2>/dev/null
  give_to_nobody "$cluster"
fi

pid=$(head -n 1 "$cluster/postmaster.pid" 2>/dev/null)
# Postgres itself recognizes one that a person has started in this folder, which has no lock of the kernel.
if [ "$system" = Linux ] && [ "$(readlink "/proc/$pid/cwd")" != "$(readlink -f "$cluster")" ]; then
  # The process that a killed Postgres left in its file has ended, and its number may belong to any other one. Postgres ignores
  # a number that it finds in this variable. It would not start with a file without a number, which a full disk may leave.
  case $pid in
    '' | 0 | *[!0-9-]*) rm -f "$cluster/postmaster.pid" ;;
    *) export PG_GRANDPARENT_PID="$pid" ;;
  esac
  rm -f "$cluster"/.s.PGSQL.*.lock
fi
exec "$@"
