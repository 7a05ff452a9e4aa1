// A message that cannot be written must not end the process: the disk is full, or the program that reads it has ended.
for (const output of [process.stdout, process.stderr]) output.on('error', () => undefined);
