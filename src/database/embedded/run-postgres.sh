#!/bin/sh
# Makes the database cluster if there is none, and runs Postgres until it ends or standard input closes.
#
# run-postgres.sh CLUSTER PACKAGE PORT CONNECTIONS
#   CLUSTER      the folder of the cluster
#   PACKAGE      the folder of the programs of Postgres
#   PORT         a part of the name of the socket
#   CONNECTIONS  the most connections
cluster=$1 package=$2 port=$3 connections=$4 system=$(uname)

# Prints the number of the process of the Postgres that works in the folder, if it is known here: another container has other
# numbers. postgres --single writes it with a minus.
find_postgres() {
  pid=$(head -n 1 "$cluster/postmaster.pid" 2>/dev/null)
  [ "$(readlink "/proc/${pid#-}/cwd")" != "$(readlink -f "$cluster")" ] || echo "${pid#-}"
}

# Postgres recognizes another one in its folder by the number of its process, which means nothing in another container. So this
# script, Postgres and all its processes hold a lock of the kernel, too. macOS has no flock, and no containers.
lock() {
  [ "$system" = Linux ] || return 0
  exec 9<"$1"
  flock --nonblock 9 && return
  # Any other exit code is a failure of flock, which it has reported. The words are those of Postgres.
  [ $? != 1 ] || echo "Is another postmaster (PID $(find_postgres)) running?" >&2
  exit 1
}

# Root runs Postgres as `nobody`.
give_to_nobody() {
  if [ "$(id -u)" = 0 ] && [ -O "$1" ] && ! chown -hR 65534:65534 "$1" 2>/dev/null; then
    echo 'root may not give the folder to the user nobody here: start as an ordinary user' >&2
    exit 1
  fi
}

# While there is no cluster to lock, the lock is on the folder that contains it.
[ -e "$cluster" ] || lock "${cluster%/*}"
# Another start may have made it before this one had the lock.
if [ ! -e "$cluster" ]; then
  # The cluster gets its name when it is complete and on the disk, so an interrupted start leaves nothing that the next one could
  # take for a database.
  new=$cluster.unfinished
  # On a full disk, what was unpacked would leave no space for anything.
  trap 'rm -rf "$new"' EXIT
  # tar itself would read a backslash in the name of a folder as the beginning of another character.
  rm -rf "$new" && mkdir -m 700 "$new" &&
    (cd "$new" && tar -xz --no-same-owner) <"$package/new-cluster.tgz" && give_to_nobody "$new" &&
    sync -f "$new" && mv "$new" "$cluster" && sync -f "$cluster" || exit
  trap - EXIT
fi
lock "$cluster"
# A volume may be opened to a group at each mount, as Kubernetes does with fsGroup, and Postgres would refuse it. Neither the folder
# that a link names is changed, because another user may have made the link, nor one of another program.
if [ ! -L "$cluster" ] && [ -e "$cluster/PG_VERSION" ]; then
  # Without a right of root's, this fails for a folder that root has given away, which is closed already.
  chmod 700 "$cluster" 2>/dev/null
  give_to_nobody "$cluster"
fi
# This script has the lock, so the Postgres that a killed service or container left in these files has ended, and its number may
# belong to any other process. One that a person has started in this folder, which has no lock, is recognized by Postgres.
if [ "$system" = Linux ] && [ -z "$(find_postgres)" ]; then
  rm -f "$cluster/postmaster.pid" "$cluster"/.s.PGSQL.*.lock
fi

# These settings are not in postgresql.conf, so that a new version of the service may change them.
set -- "$package/bin/postgres" -D "$cluster" -c port="$port" -c max_connections="$connections" -c shared_buffers=16MB
# A relative path, because that of the cluster may be too long for a socket.
set -- "$@" -c listen_addresses= -c unix_socket_directories=. -c unix_socket_permissions=0700
# The service reads the messages from standard error.
set -- "$@" -c logging_collector=off -c log_destination=stderr
# Errors are reported to the client that caused them, and the text of statements may contain data of users.
set -- "$@" -c log_line_prefix= -c log_checkpoints=off -c log_min_messages=log -c log_min_error_statement=panic
# By default, macOS leaves in the cache of the disk what is written.
[ "$system" = Linux ] || set -- "$@" -c wal_sync_method=fsync_writethrough

set -- sh "${0%/*}/run-until-input-ends.sh" "$@"
[ "$(id -u)" != 0 ] || set -- sh "${0%/*}/as-ordinary-user.sh" "$@"
exec "$@"
