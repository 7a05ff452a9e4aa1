#!/bin/sh
# Runs Postgres until it ends or standard input closes, which happens however the process at the other end of it ends:
# run-until-input-ends.sh SERVICE PROGRAM ARGUMENT…
#   SERVICE   the process at the other end, which another start compares with the parent of this one
shift
exec 3<&0
"$@" </dev/null 3<&- &
postgres=$!
trap '' INT TERM HUP
# A Postgres that does not end, such as a frozen one, is killed; it recovers at the next start. One that has just begun ignores
# the first signal.
(
  read -r _
  kill -INT "$postgres"
  sleep 1
  kill -INT "$postgres"
  sleep 1
  kill -QUIT "$postgres"
  sleep 1
  # Its children, too, one of which may be what is frozen: each has a session of its own. Only Linux lists them. They come first,
  # because this shell is killed as soon as Postgres has ended.
  # shellcheck disable=SC2046 # Numbers.
  kill -KILL $(cat "/proc/$postgres/task/$postgres/children") "$postgres"
) <&3 9<&- >/dev/null 2>&1 &
watcher=$!
wait "$postgres"
code=$?
kill -KILL "$watcher"
exit "$code"
