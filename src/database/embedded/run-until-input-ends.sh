#!/bin/sh
# Runs Postgres until it ends or standard input closes, which happens however the process at the other end of it ends:
# run-until-input-ends.sh PROGRAM ARGUMENT…
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
watcher=$!
wait "$postgres"
code=$?
kill -KILL "$watcher"
exit "$code"
