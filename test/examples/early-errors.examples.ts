import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { NODE, ROOT, runProgram } from '../setup/process/command.js';
import { startService, type TestService } from '../setup/service/service.js';
import { isInstalled } from './sample.js';

const BYTES = 3_000_000;

/** As Debian's package python3-requests installs it. */
const REQUESTS = '/usr/lib/python3/dist-packages/requests';

/** Programs that send a body, and print the status and the body of the response: URL TOKEN BYTES. */
const CLIENTS: Readonly<Record<string, { needs: string[]; command: string[] }>> = {
  curl: { needs: ['curl'], command: curl() },
  'curl without Expect': { needs: ['curl'], command: curl('Expect:') },
  'curl that closes its connection': { needs: ['curl'], command: curl('Connection: close') },
  fetch: {
    needs: [],
    command: [
      ...NODE,
      '--eval',
      `const [url, token, bytes] = process.argv.slice(1);
       const headers = { authorization: 'Bearer ' + token, 'content-type': 'application/json' };
       const response = await fetch(url, { method: 'POST', headers, body: 'x'.repeat(bytes) });
       console.log(response.status + await response.text());`,
      '--input-type=module',
    ],
  },
  requests: {
    needs: ['/usr/bin/python3', REQUESTS],
    command: [
      '/usr/bin/python3',
      '-c',
      `import sys, requests
_, url, token, size = sys.argv
headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
response = requests.post(url, data=b"x" * int(size), headers=headers)
print(f"{response.status_code}{response.text}")`,
    ],
  },
  java: { needs: ['java'], command: ['java', `${ROOT}/test/examples/Post.java`] },
};

function curl(header = ''): string[] {
  const script = `
    head -c "$3" /dev/zero | curl --silent --show-error --write-out '\\n%{http_code}' --data-binary @- \
      --header "Authorization: Bearer $2" --header 'Content-Type: application/json' --header '${header}' "$1" |
      { read -r body; read -r status; echo "$status$body"; }`;
  return ['sh', '-c', script, 'sh'];
}

describe('a client that sends 3 MB gets its error, which the service sends before it has read them', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.close());

  for (const [name, { needs, command }] of Object.entries(CLIENTS)) {
    const test = needs.every(isInstalled) ? it : it.skip;
    test(name, async () => {
      const [program, ...args] = command;
      for (const [token, expected] of [
        ['wrong', /^401\{"error":40101,/],
        [service.token, /^400\{"error":40003,/],
      ] as const) {
        const run = runProgram(program!, [...args, `${service.url}/plants`, token, String(BYTES)]);
        expect(await run.exit()).toBe(0);
        expect(run.stdout).toMatch(expected);
      }
    });
  }
});
