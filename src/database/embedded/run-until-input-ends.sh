#!/bin/sh
# Runs Postgres until it ends or standard input closes, which happens however the process at the other end of it ends:
# run-until-input-ends.sh PROGRAM ARGUMENT…
# The shell gives a program in the background another standard input: the watcher reads this one.
exec 3<&0
"$@" 3<&- &
postgres=$!
# Signals to all processes, as those of a system that shuts down, must not end this script before Postgres.
trap '' INT TERM HUP
# A Postgres that does not end, such as a frozen one, is killed; it recovers at the next start. The watcher holds neither the lock
# nor standard error, because its last sleep may outlive it.
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
